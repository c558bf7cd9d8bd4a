// Strict JSON: what is refused, with which words, and the canonical form.
#include "base/json.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

Json parsed(std::string_view text) {
  auto json = parse_json(text, "test");
  EXPECT_TRUE(json) << (json ? "" : json.error().message);
  return json ? *json : Json();
}

// "" for success, else "code: message".
template <class T>
std::string outcome(const Result<T>& result) {
  if (result) return "";
  return std::string(name(result.error().code)) + ": " + result.error().message;
}

TEST(ParseJson, AgreesWithTheLibraryOnGoodText) {
  for (const std::string_view text :
       {R"({"b": [1, -2, 3.5, true, false, null, "x\u00e9\n"], "a": {"c": {}}, "": []})", "null",
        " 18446744073709551615 ", R"([[[]], {"a": {"a": 1}}])", "1e-06"}) {
    EXPECT_EQ(parsed(text), Json::parse(text)) << text;
  }
}

TEST(ParseJson, RefusesBadText) {
  struct Case {
    std::string text;
    std::string_view words;
  };
  const Case cases[] = {
      {"", "unexpected end of input"},
      {"{", "unexpected end of input"},
      {"{} {}", "expected end of input"},
      {"[1,]", "unexpected ']'"},
      {"{'a': 1}", "invalid literal"},
      {"nan", "invalid literal"},
      {"// comment\n1", "invalid literal"},
      {"01", "expected end of input"},
      {"1e999", "number overflow"},
      {"\"\xff\"", "ill-formed UTF-8"},
      {"\"\\ud800\"", "surrogate"},
      {R"({"a": 1, "a": 1})", R"(duplicate key "a")"},
      {R"({"a": {"b": 1, "c": 2, "b": 3}})", R"(duplicate key "b")"},
      {R"({"\u0061": 1, "a": 1})", R"(duplicate key "a")"},
      {std::string(65, '[') + std::string(65, ']'), "nested deeper than 64"},
      {std::string(100000, '['), "nested deeper than 64"},
  };
  for (const Case& c : cases) {
    const auto result = parse_json(c.text, "some.json");
    const std::string found = outcome(result);
    EXPECT_TRUE(found.starts_with("malformed_json: some.json: ")) << c.text << " -> " << found;
    EXPECT_NE(found.find(c.words), found.npos) << c.text.substr(0, 80) << " -> " << found;
  }
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']'), "deep"));
}

TEST(ParseJson, SameKeyInDifferentObjectsIsNoDuplicate) {
  EXPECT_TRUE(parse_json(R"([{"a": 1}, {"a": {"a": 2}}])", "test"));
}

TEST(CanonicalJson, IsOneByteForm) {
  EXPECT_EQ(canonical_json(parsed(R"({"b":[1,2.50,1E-6],"a":{},"é":"\u00e9\/"})")),
            "{\n  \"a\": {},\n  \"b\": [\n    1,\n    2.5,\n    1e-06\n  ],\n  \"é\": \"é/\"\n}\n");
}

TEST(CanonicalJson, OnlyTheCanonicalTextIsAccepted) {
  const std::string text = "{\n  \"a\": 1,\n  \"b\": 2.5\n}\n";
  EXPECT_EQ(outcome(parse_canonical_json(text, "m.json")), "");
  for (const std::string_view other :
       {"{\n  \"a\": 1,\n  \"b\": 2.5\n}", "{\n  \"b\": 2.5,\n  \"a\": 1\n}\n",
        "{\n  \"a\": 1,\n  \"b\": 2.50\n}\n", "{\"a\": 1, \"b\": 2.5}\n",
        "{\n  \"\\u0061\": 1,\n  \"b\": 2.5\n}\n", "\xef\xbb\xbf{\n  \"a\": 1,\n  \"b\": 2.5\n}\n",
        "{\r\n  \"a\": 1,\r\n  \"b\": 2.5\r\n}\r\n"}) {
    const auto result = parse_canonical_json(other, "m.json");
    ASSERT_FALSE(result) << other;
    EXPECT_EQ(result.error().code, ErrorCode::malformed_json) << other;
  }
}

// Every type against every kind of value: which pairs are accepted.
TEST(JsonValue, TypesAreStrict) {
  struct Case {
    std::string_view text;
    bool integer32, integer64, number, boolean, string, array, object;
  };
  const Case cases[] = {
      {"0", true, true, true, false, false, false, false},
      {"4294967295", true, true, true, false, false, false, false},
      {"4294967296", false, true, true, false, false, false, false},
      {"18446744073709551615", false, true, true, false, false, false, false},
      {"18446744073709551616", false, false, true, false, false, false, false},
      {"-1", false, false, true, false, false, false, false},
      {"1.0", false, false, true, false, false, false, false},
      {"1e3", false, false, true, false, false, false, false},
      {"true", false, false, false, true, false, false, false},
      {"\"1\"", false, false, false, false, true, false, false},
      {"null", false, false, false, false, false, false, false},
      {"[]", false, false, false, false, false, true, false},
      {"{}", false, false, false, false, false, false, true},
  };
  for (const Case& c : cases) {
    const Json json = parsed(c.text);
    const JsonValue value(json, "t");
    EXPECT_EQ(value.as<uint32_t>().has_value(), c.integer32) << c.text;
    EXPECT_EQ(value.as<uint64_t>().has_value(), c.integer64) << c.text;
    EXPECT_EQ(value.as<double>().has_value(), c.number) << c.text;
    EXPECT_EQ(value.as<bool>().has_value(), c.boolean) << c.text;
    EXPECT_EQ(value.as<std::string>().has_value(), c.string) << c.text;
    EXPECT_EQ(value.as<std::vector<uint32_t>>().has_value(), c.array) << c.text;
    EXPECT_EQ(value.as<JsonObject>().has_value(), c.object) << c.text;
  }
}

TEST(JsonValue, IntegersFromTheProgramAreIntegersToo) {
  EXPECT_EQ(JsonValue(Json(7), "t").as<uint32_t>().value_or(0), 7u);
  EXPECT_FALSE(JsonValue(Json(-7), "t").as<uint32_t>());
}

TEST(JsonObject, MessagesNameFileAndPath) {
  Json json;
  auto root = open_json_object(
      R"({"layers": [{"head_dim": 1}, {"head_dim": true}], "odd key.": {"n": "1"}, "big": 4294967296})",
      "config.json", json);
  ASSERT_TRUE(root);
  auto layers = root->get<std::vector<JsonObject>>("layers");
  ASSERT_TRUE(layers);
  EXPECT_EQ(
      outcome((*layers)[1].get<uint32_t>("head_dim")),
      "wrong_type: config.json: layers[1].head_dim: expected an unsigned integer, found true");
  EXPECT_EQ(outcome((*layers)[0].get<uint32_t>("window")),
            "missing_key: config.json: layers[0].window: the key is missing");
  EXPECT_EQ(outcome(root->get<JsonObject>("odd key.")->get<uint32_t>("n")),
            "wrong_type: config.json: [\"odd key.\"].n: expected an unsigned integer, found \"1\"");
  EXPECT_EQ(outcome(root->get<uint32_t>("big")),
            "bad_value: config.json: big: expected at most 4294967295, found 4294967296");
  EXPECT_EQ(outcome(root->get<std::vector<uint32_t>>("layers")),
            "wrong_type: config.json: layers[0]: expected an unsigned integer, found an object");
  EXPECT_EQ(outcome(open_json_object("[]", "list.json", json)),
            "wrong_type: list.json: expected an object, found an array");
}

TEST(JsonObject, FinishRefusesWhatNobodyRead) {
  Json json;
  auto root = open_json_object(R"({"a": 1, "b": 2, "c": 3, "d": null})", "f", json);
  ASSERT_TRUE(root);
  EXPECT_TRUE(root->get<uint32_t>("a"));
  root->skip("c");
  root->skip("not there");
  EXPECT_TRUE(outcome(root->finish()).starts_with("unknown_key: f: b: "));
  EXPECT_TRUE(root->find<uint32_t>("b"));
  EXPECT_TRUE(outcome(root->finish()).starts_with("unknown_key: f: d: "));
  EXPECT_TRUE(root->nullable<uint32_t>("d"));
  EXPECT_EQ(outcome(root->finish()), "");
}

TEST(JsonObject, MissingAndNullDiffer) {
  Json json;
  auto root = open_json_object(R"({"null": null, "one": 1, "text": "1"})", "f", json);
  ASSERT_TRUE(root);
  EXPECT_EQ(root->find<uint32_t>("none")->has_value(), false);
  EXPECT_EQ(root->nullable<uint32_t>("none")->has_value(), false);
  EXPECT_EQ(root->nullable<uint32_t>("null")->has_value(), false);
  EXPECT_EQ(**root->find<uint32_t>("one"), 1u);
  EXPECT_EQ(**root->nullable<uint32_t>("one"), 1u);
  EXPECT_FALSE(root->find<uint32_t>("null"));
  EXPECT_FALSE(root->get<uint32_t>("null"));
  EXPECT_FALSE(root->nullable<uint32_t>("text"));
}

}  // namespace
}  // namespace tandem
