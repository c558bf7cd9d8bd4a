// What the compiler takes, and what it refuses by name.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "text/tokenizers.h"

namespace tandem::text {
namespace {

using nlohmann::json;

struct Case {
  const char* name;
  std::function<void(json&)> change;
  const char* message = "";  // a part of it
};

const json metaspace = {{"type", "Metaspace"}, {"replacement", "▁"}};
const json prepend = {{"type", "Prepend"}, {"prepend", "▁"}};
const json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}};

json split(const char* pattern, bool invert) {
  return {{"type", "Split"},
          {"pattern", {{"String", pattern}}},
          {"behavior", "MergedWithPrevious"},
          {"invert", invert}};
}

TEST(Compile, TakesOtherWaysToSayTheSame) {
  const std::string text = "ab ab<tab>c d é<|turn>";
  const Tokenizer plain = test::compile_and_load(test::tiny_json().dump());
  const auto expected = plain.encode(text, {.add_bos = true, .parse_special = true}).value();
  const std::vector<Case> cases = {
      {"no change", [](json&) {}},
      {"merges as strings",
       [](json& t) {
         for (json& merge : t["model"]["merges"]) {
           merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
         }
       }},
      {"a Split at spaces, of which none are left",
       [](json& t) { t["pre_tokenizer"] = split(" ", false); }},
      {"Sequences of one",
       [](json& t) {
         t["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array({t["normalizer"]})}};
         t["pre_tokenizer"] = {{"type", "Sequence"},
                               {"pretokenizers", json::array({split(" ", false)})}};
       }},
      {"no post_processor", [](json& t) { t["post_processor"] = nullptr; }},
      {"a template of the text alone", [](json& t) { t["post_processor"]["single"].erase(0); }},
      {"empty affixes", [](json& t) { t["model"]["continuing_subword_prefix"] = ""; }},
      {"no ignore_merges", [](json& t) { t["model"].erase("ignore_merges"); }},
      {"no unk_token", [](json& t) { t["model"]["unk_token"] = nullptr; }},
  };
  for (const auto& [name, change, message] : cases) {
    json tokenizer = test::tiny_json();
    change(tokenizer);
    const auto table = compile_tokenizer(tokenizer.dump(), "tokenizer.json");
    ASSERT_TRUE(table) << name << ": " << table.error().message;
    EXPECT_EQ(
        Tokenizer::load(*table)->encode(text, {.add_bos = true, .parse_special = true}).value(),
        expected)
        << name;
  }
}

TEST(Compile, IsTheSameEachTime) {
  const std::string text = test::tiny_json().dump();
  EXPECT_EQ(compile_tokenizer(text, "a").value(), compile_tokenizer(text, "b").value());
}

TEST(Compile, RefusesByName) {
  const std::vector<Case> cases = {
      // components
      {"version", [](json& t) { t["version"] = "2.0"; }, "version"},
      {"truncation",
       [](json& t) {
         t["truncation"] = {{"max_length", 8}};
       },
       "truncation"},
      {"padding",
       [](json& t) {
         t["padding"] = {{"strategy", "BatchLongest"}};
       },
       "padding"},
      {"no normalizer", [](json& t) { t["normalizer"] = nullptr; }, "null"},
      {"a normalizer",
       [](json& t) {
         t["normalizer"] = {{"type", "NFKC"}};
       },
       "NFKC"},
      {"two normalizers",
       [](json& t) {
         t["normalizer"] = {{"type", "Sequence"},
                            {"normalizers", json::array({prepend, t["normalizer"]})}};
       },
       "Sequence"},
      {"another Replace", [](json& t) { t["normalizer"]["content"] = "_"; }, "normalizer"},
      {"a Replace by regex",
       [](json& t) {
         t["normalizer"]["pattern"] = {{"Regex", " "}};
       },
       "normalizer"},
      {"Metaspace", [](json& t) { t["pre_tokenizer"] = metaspace; }, "Metaspace"},
      {"ByteLevel", [](json& t) { t["pre_tokenizer"] = byte_level; }, "ByteLevel"},
      {"a Split elsewhere", [](json& t) { t["pre_tokenizer"] = split("a", false); }, "Split"},
      {"an inverted Split", [](json& t) { t["pre_tokenizer"] = split(" ", true); }, "Split"},
      {"ByteLevel decoder", [](json& t) { t["decoder"] = byte_level; }, "ByteLevel"},
      {"no decoder", [](json& t) { t["decoder"] = nullptr; }, "decoder"},
      {"a Strip in the decoder",
       [](json& t) {
         t["decoder"]["decoders"].push_back({{"type", "Strip"}});
       },
       "Strip"},
      {"a decoder without bytes", [](json& t) { t["decoder"]["decoders"].erase(1); }, "decoder"},
      {"another post_processor",
       [](json& t) {
         t["post_processor"] = {{"type", "RobertaProcessing"}};
       },
       "RobertaProcessing"},
      {"a token after the text",
       [](json& t) {
         json& single = t["post_processor"]["single"];
         std::swap(single[0], single[1]);
       },
       "post_processor"},
      {"BOS that is not there",
       [](json& t) { t["post_processor"]["single"][0]["SpecialToken"]["id"] = "<s>"; }, "<s>"},
      {"BOS that is not special",
       [](json& t) { t["post_processor"]["single"][0]["SpecialToken"]["id"] = "<tab>"; },
       "expected a special token"},
      {"an unknown key", [](json& t) { t["novel"] = 1; }, "novel"},
      // the model
      {"Unigram", [](json& t) { t["model"]["type"] = "Unigram"; }, "Unigram"},
      {"no type", [](json& t) { t["model"].erase("type"); }, "type"},
      {"dropout", [](json& t) { t["model"]["dropout"] = 0.1; }, "dropout"},
      {"a prefix", [](json& t) { t["model"]["continuing_subword_prefix"] = "##"; },
       "continuing_subword_prefix"},
      {"a suffix", [](json& t) { t["model"]["end_of_word_suffix"] = "</w>"; },
       "end_of_word_suffix"},
      {"no byte_fallback", [](json& t) { t["model"]["byte_fallback"] = false; }, "byte_fallback"},
      {"ignore_merges", [](json& t) { t["model"]["ignore_merges"] = true; }, "ignore_merges"},
      {"an unknown option", [](json& t) { t["model"]["novel"] = 1; }, "novel"},
      // added tokens
      {"lstrip", [](json& t) { t["added_tokens"][0]["lstrip"] = true; }, "lstrip"},
      {"rstrip", [](json& t) { t["added_tokens"][0]["rstrip"] = true; }, "rstrip"},
      {"single_word", [](json& t) { t["added_tokens"][4]["single_word"] = true; }, "single_word"},
      {"normalized", [](json& t) { t["added_tokens"][4]["normalized"] = true; }, "normalized"},
      {"an option without a value", [](json& t) { t["added_tokens"][4].erase("lstrip"); },
       "lstrip"},
      {"an unknown added option", [](json& t) { t["added_tokens"][4]["novel"] = 1; }, "novel"},
      {"an added token with another id", [](json& t) { t["added_tokens"][4]["id"] = 9; }, "<tab>"},
      {"a token added twice", [](json& t) { t["added_tokens"].push_back(t["added_tokens"][4]); },
       "once"},
      {"an empty added token",
       [](json& t) {
         t["added_tokens"][4]["content"] = "";
         t["added_tokens"][4]["id"] = t["model"]["vocab"].size();
       },
       "empty"},
      // vocabulary and merges
      {"a hole in the ids", [](json& t) { t["model"]["vocab"]["abab"] = 999; }, "999"},
      {"an id twice", [](json& t) { t["model"]["vocab"]["abab"] = 7; }, "has id 7"},
      {"an id that is text", [](json& t) { t["model"]["vocab"]["abab"] = "7"; }, "abab"},
      {"a negative id", [](json& t) { t["model"]["vocab"]["abab"] = -7; }, "abab"},
      {"vocab as a list", [](json& t) { t["model"]["vocab"] = json::array(); }, "vocab"},
      {"a byte without a token",
       [](json& t) {
         json& vocab = t["model"]["vocab"];
         vocab["<0xab>"] = vocab["<0xAB>"];
         vocab.erase("<0xAB>");
       },
       "<0xAB>"},
      {"no token for a space",
       [](json& t) {
         json& vocab = t["model"]["vocab"];
         vocab["f"] = vocab["▁"];
         vocab.erase("▁");
         t["model"]["merges"] = json::array();
       },
       "space"},
      {"an unknown left side",
       [](json& t) {
         t["model"]["merges"].push_back({"x", "b"});
       },
       "merges[4]"},
      {"an unknown result",
       [](json& t) {
         t["model"]["merges"].push_back({"d", "d"});
       },
       "merges[4]"},
      {"a merge of three",
       [](json& t) {
         t["model"]["merges"].push_back({"a", "b", "c"});
       },
       "merges[4]"},
      {"a merge with two spaces", [](json& t) { t["model"]["merges"].push_back("a b c"); },
       "merges[4]"},
      {"a merge without a space", [](json& t) { t["model"]["merges"].push_back("ab"); },
       "merges[4]"},
      {"merges as an object", [](json& t) { t["model"]["merges"] = json::object(); }, "merges"},
      {"a merge of bytes",
       [](json& t) {
         t["model"]["vocab"]["<0x00><0x01>"] = t["model"]["vocab"].size();
         t["model"]["merges"].push_back({"<0x00>", "<0x01>"});
       },
       "no bytes"},
      {"a merge that makes a special token",
       [](json& t) {
         t["added_tokens"].push_back(t["added_tokens"][0]);
         t["added_tokens"].back()["content"] = "abab";
         t["added_tokens"].back()["id"] = t["model"]["vocab"]["abab"];
       },
       "special"},
  };
  for (const auto& [name, change, message] : cases) {
    json tokenizer = test::tiny_json();
    change(tokenizer);
    const auto table = compile_tokenizer(tokenizer.dump(), "folder/tokenizer.json");
    ASSERT_FALSE(table) << name;
    EXPECT_NE(table.error().message.find("folder/tokenizer.json"), std::string::npos)
        << name << ": " << table.error().message;
    EXPECT_NE(table.error().message.find(message), std::string::npos)
        << name << ": " << table.error().message;
  }
}

TEST(Compile, RefusesWhatIsNotJson) {
  for (const char* text : {"", "[]", "null", "{", R"({"version":"1.0","version":"1.0"})"}) {
    EXPECT_FALSE(compile_tokenizer(text, "tokenizer.json")) << text;
  }
}

// Compiled or refused, but never a crash.
TEST(Compile, SurvivesRandomDamage) {
  const std::string text = test::tiny_json().dump();
  std::mt19937 random(2);
  size_t refused = 0;
  for (int round = 0; round < 500; ++round) {
    std::string damaged = text;
    for (int i = 0; i < 3; ++i) {
      const size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, 1 + random() % 8);
          break;
        default:
          damaged.insert(at, text, random() % text.size(), 1 + random() % 8);
      }
    }
    refused += !compile_tokenizer(damaged, "tokenizer.json");
  }
  EXPECT_GT(refused, 400u);
}

}  // namespace
}  // namespace tandem::text
