// Exports of GGUF files: the same artifact as from a Hugging Face folder with the same weights,
// whatever type they have, and what is not a Gemma refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "artifact/verify.h"
#include "exporter/checkpoint.h"
#include "exporter/export.h"
#include "support/gguf.h"
#include "support/refusal.h"
#include "text/tokenizer.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using exporter::export_checkpoint;
using exporter::ExportOptions;
using exporter::ExportReport;
using spec::WeightType;
using Tensors = std::vector<CheckpointTensor>;

// Eight layers, so that the table of per-layer embeddings has 256 columns, a block of the K types.
const TinyShape eight_layers{.layers = 8};

struct GgufExport : ::testing::Test {
  // A folder with the same texts.
  void SetUp() override { write_checkpoint(folder(), tiny_config(eight_layers)); }

  fs::path folder() const { return temporary.path() / "folder"; }
  fs::path file() const { return temporary.path() / "model.gguf"; }
  fs::path out(const char* name) const { return temporary.path() / name; }

  GgufContent content(const std::string& config, const Tensors& tensors) const {
    return gguf_checkpoint(config, read_file(folder() / "tokenizer.json"),
                           read_file(folder() / "chat_template.jinja"), tensors);
  }
  Result<ExportReport> run(const GgufContent& gguf, const ExportOptions& options = {}) const {
    fs::remove_all(out("gguf"));
    write_file(file(), write_gguf(gguf));
    return export_checkpoint(file(), out("gguf"), options);
  }
  Result<ExportReport> run(const Tensors& tensors, const ExportOptions& options = {}) const {
    return run(content(tiny_config(eight_layers), tensors), options);
  }
  // Of the same weights from a folder, to the same types.
  Result<ExportReport> run_folder(const Tensors& tensors, const ExportReport& types) const {
    fs::remove_all(out("hf"));
    write_checkpoint(folder(), tiny_config(eight_layers), in_floats(tensors));
    ExportOptions options;
    for (const exporter::TensorReport& tensor : types.tensors) {
      if (tensor.type != WeightType::u32) options.weights.recipe.tensors[tensor.name] = tensor.type;
    }
    return export_checkpoint(folder(), out("hf"), options);
  }

  TemporaryFolder temporary;
};

void expect_same_shards(const fs::path& first, const fs::path& second) {
  size_t shards = 0;
  for (const auto& entry : fs::directory_iterator(first)) {
    if (entry.path().extension() != ".safetensors") continue;
    ++shards;
    EXPECT_TRUE(read_file(entry.path()) == read_file(second / entry.path().filename()))
        << entry.path();
  }
  EXPECT_GT(shards, 0u);
}

WeightType type_of(const ExportReport& report, std::string_view name) {
  for (const exporter::TensorReport& tensor : report.tensors) {
    if (tensor.name == name) return tensor.type;
  }
  ADD_FAILURE() << "no tensor " << name;
  return WeightType::u32;
}

struct TypeCase {
  std::string_view type;
  WeightType kept;
  bool exact;
};

TEST_F(GgufExport, EveryTypeGivesWhatTheSameWeightsGive) {
  const TypeCase cases[] = {
      {"F32", WeightType::f32, true},   {"F16", WeightType::f16, false},  // tiny values are raised

      {"BF16", WeightType::f16, false}, {"Q4_0", WeightType::q4_0, true},
      {"Q8_0", WeightType::q8_0, true}, {"Q4_1", WeightType::f16, false},
      {"Q5_0", WeightType::f16, false}, {"Q5_1", WeightType::f16, false},
      {"Q4_K", WeightType::f16, false}, {"Q5_K", WeightType::f16, false},
      {"Q6_K", WeightType::f16, false}};
  for (const TypeCase& test : cases) {
    SCOPED_TRACE(test.type);
    const bool plain = block_columns(test.type) == 1;
    Tensors tensors = random_tensors(tiny_config(eight_layers),
                                     {.dtype = plain ? std::string(test.type) : "F16"});
    if (!plain) tensors = in_blocks(std::move(tensors), test.type);
    const auto report = run(tensors);
    ASSERT_TRUE(accepted(report));
    EXPECT_EQ(type_of(*report, "per_layer_embedding"), test.kept);
    if (block_columns(test.type) <= 32) {
      for (const char* name : {"embedding", "layers.0.qkv", "layers.7.gate_up"}) {
        EXPECT_EQ(type_of(*report, name), test.kept) << name;
      }
      EXPECT_EQ(report->recipe.matrix, test.kept);
      EXPECT_TRUE(report->recipe.overrides.empty());
    }
    for (const exporter::TensorReport& tensor : report->tensors) {
      EXPECT_TRUE(tensor.exact || !test.exact) << tensor.name;
    }
    EXPECT_TRUE(accepted(artifact::verify(out("gguf"))));
    const auto expected = run_folder(tensors, *report);
    ASSERT_TRUE(accepted(expected));
    expect_same_shards(out("gguf"), out("hf"));
  }
}

TEST_F(GgufExport, GeometryTokenizerAndTextsAreTheFolders) {
  const Tensors tensors = random_tensors(tiny_config(eight_layers));
  const auto report = run(tensors);
  ASSERT_TRUE(accepted(report));
  ASSERT_TRUE(accepted(run_folder(tensors, *report)));
  const auto from_gguf = artifact::Artifact::open(out("gguf"));
  const auto from_folder = artifact::Artifact::open(out("hf"));
  ASSERT_TRUE(accepted(from_gguf));
  ASSERT_TRUE(accepted(from_folder));
  EXPECT_EQ(from_gguf->config(), from_folder->config());
  EXPECT_EQ(read_file(out("gguf") / "chat_template.jinja"),
            read_file(out("hf") / "chat_template.jinja"));
  EXPECT_FALSE(fs::exists(out("gguf") / "generation_config.json"));
  std::string table = read_file(out("gguf") / "tokenizer.bin");
  std::string expected = read_file(out("hf") / "tokenizer.bin");
  EXPECT_NE(table, expected);
  table.replace(28, 32, 32, '\0');  // the digest of the source
  expected.replace(28, 32, 32, '\0');
  EXPECT_TRUE(table == expected);
}

// An F32 matrix on the grid of Q4_0 is kept exactly by fewer bytes; options have the last word.
TEST_F(GgufExport, FloatsOnTheGridAndOptions) {
  const Tensors blocks = in_blocks(random_tensors(tiny_config(eight_layers)), "Q4_0");
  const auto report = run(in_floats(blocks));
  ASSERT_TRUE(accepted(report));
  EXPECT_EQ(report->recipe.matrix, WeightType::q4_0);
  EXPECT_TRUE(report->recipe.overrides.empty());
  ExportOptions options;
  options.weights.recipe.matrix = WeightType::f16;
  const auto asked = run(blocks, options);
  ASSERT_TRUE(accepted(asked));
  EXPECT_EQ(type_of(*asked, "layers.0.down"), WeightType::f16);
  EXPECT_EQ(type_of(*asked, "embedding"), WeightType::q4_0);
}

TEST_F(GgufExport, RowsOfSeveralTypesBecomeF16) {
  GgufContent gguf = content(tiny_config(eight_layers),
                             in_blocks(random_tensors(tiny_config(eight_layers)), "Q4_0"));
  GgufTensorData& up = gguf.tensor("blk.0.ffn_up.weight");
  up.type = 8;
  up.bytes = random_blocks("Q8_0", up.shape[0] * up.shape[1], 1);
  const auto report = run(gguf);
  ASSERT_TRUE(accepted(report));
  EXPECT_EQ(type_of(*report, "layers.0.gate_up"), WeightType::f16);
  EXPECT_EQ(report->recipe.overrides.size(), 1u);
}

TEST_F(GgufExport, KeysThatAreValues) {
  const TinyShape shape{.layers = 3, .kv_shared = 0, .k_eq_v = true};
  const Tensors tensors = random_tensors(tiny_config(shape));
  ASSERT_TRUE(accepted(run(content(tiny_config(shape), tensors))));
  const auto opened = artifact::Artifact::open(out("gguf"));
  ASSERT_TRUE(accepted(opened));
  EXPECT_TRUE(opened->config().layers[2].key_is_value);
  EXPECT_FALSE(opened->config().layers[0].key_is_value);
}

// Gemma 3: norms that have their 1 added already, and SentencePiece's scores.
TEST_F(GgufExport, Gemma3) {
  nlohmann::json config_json = nlohmann::json::parse(tiny_gemma3_config());
  config_json["query_pre_attn_scalar"] = 16;  // the head_dim, which GGUF does not say
  const std::string config = config_json.dump();
  Tensors tensors = random_tensors(config, {.dtype = "F32"});
  write_checkpoint(folder(), config, tensors);
  ExportOptions options;
  options.weights.recipe.matrix = options.weights.recipe.table = WeightType::f16;
  ASSERT_TRUE(accepted(export_checkpoint(folder(), out("hf"), options)));
  for (CheckpointTensor& tensor : tensors) {
    if (!tensor.name.ends_with("norm.weight")) continue;
    for (size_t i = 0; i < tensor.bytes.size(); i += sizeof(float)) {
      float value;
      std::memcpy(&value, &tensor.bytes[i], sizeof(value));
      value += 1;
      std::memcpy(&tensor.bytes[i], &value, sizeof(value));
    }
  }
  GgufContent gguf = content(config, tensors);
  std::vector<std::string> scores(360, gguf_f32(-1000));  // of tiny tokens: th, the, _the last
  for (size_t i = 0; i < 3; ++i) scores[357 + i] = gguf_f32(-static_cast<float>(i));
  gguf.value("tokenizer.ggml.model") = gguf_text("llama");
  gguf.value("tokenizer.ggml.scores") = gguf_array(scores);
  gguf.remove("tokenizer.ggml.merges");
  ASSERT_TRUE(accepted(run(gguf, options)));
  expect_same_shards(out("gguf"), out("hf"));
  EXPECT_EQ(artifact::Artifact::open(out("gguf"))->config(),
            artifact::Artifact::open(out("hf"))->config());
  std::string table = read_file(out("gguf") / "tokenizer.bin");
  EXPECT_TRUE(table.replace(28, 32, 32, '\0') ==
              read_file(out("hf") / "tokenizer.bin").replace(28, 32, 32, '\0'));

  gguf.value("tokenizer.ggml.scores") = gguf_array({gguf_f32(NAN)});
  EXPECT_TRUE(refused(run(gguf, options), ErrorCode::wrong_type, {"scores"}));
  gguf.value("tokenizer.ggml.scores") = gguf_array(scores);
  gguf.remove("tokenizer.ggml.add_space_prefix");  // SentencePiece's default is a space
  EXPECT_TRUE(refused(run(gguf, options), ErrorCode::unsupported, {"add_space_prefix", "none"}));
}

TEST_F(GgufExport, Sampling) {
  GgufContent gguf = content(tiny_config(eight_layers), random_tensors(tiny_config(eight_layers)));
  gguf.value("general.sampling.temp") = gguf_f32(0.7f);
  gguf.value("general.sampling.top_p") = gguf_f32(0.95f);
  ASSERT_TRUE(accepted(run(gguf)));
  const std::string config = read_file(out("gguf") / "generation_config.json");
  for (const char* part : {"\"temperature\": 0.7", "\"top_p\": 0.95", "\"top_k\": 0", "true"}) {
    EXPECT_NE(config.find(part), std::string::npos) << config;
  }
}

TEST_F(GgufExport, Pair) {
  const Tensors target = random_tensors(tiny_config(eight_layers));
  write_file(file(), write_gguf(content(tiny_config(eight_layers), target)));
  for (const bool ordered : {false, true}) {
    const std::string config = tiny_assistant_config(eight_layers, ordered);
    const fs::path assistant = temporary.path() / "assistant.gguf";
    GgufContent gguf = content(config, random_assistant_tensors(config));
    write_file(assistant, write_gguf(gguf));
    fs::remove_all(out("pair"));
    ExportOptions options;
    options.assistant = assistant;
    ASSERT_TRUE(accepted(export_checkpoint(file(), out("pair"), options)));
    const auto opened = artifact::Artifact::open(out("pair"), artifact::View::mtp);
    ASSERT_TRUE(accepted(opened));
    EXPECT_EQ(opened->manifest().mtp->config,
              spec::read_assistant_config(config, "config.json").value());

    gguf.value("tokenizer.ggml.merges") = gguf_texts({"t h"});
    write_file(assistant, write_gguf(gguf));
    EXPECT_TRUE(refused(export_checkpoint(file(), out("other"), options), ErrorCode::bad_value,
                        {"assistant.gguf", "tokenizer"}));
  }
  ExportOptions options;
  options.assistant = file();
  EXPECT_TRUE(refused(export_checkpoint(file(), out("other"), options), ErrorCode::unsupported,
                      {"gemma4_assistant"}));
}

struct Refusal {
  const char* why;
  std::function<void(GgufContent&)> damage;
  ErrorCode code;
  std::initializer_list<std::string_view> words;
};

TEST_F(GgufExport, WhatIsNotAGemma) {
  const auto value = [](const char* key, std::string bytes) {
    return [=](GgufContent& gguf) { gguf.value(key) = bytes; };
  };
  const auto without = [](const char* key) { return [=](GgufContent& gguf) { gguf.remove(key); }; };
  const auto retype = [](const char* name, uint32_t type, size_t bytes) {
    return [=](GgufContent& gguf) {
      gguf.tensor(name).type = type;
      gguf.tensor(name).bytes.resize(bytes);
    };
  };
  using E = ErrorCode;
  const Refusal cases[] = {
      {"architecture",
       value("general.architecture", gguf_text("llama")),
       E::unsupported,
       {"llama"}},
      {"no architecture", without("general.architecture"), E::missing_key, {"architecture"}},
      {"one of two files", value("split.count", gguf_u32(2)), E::unsupported, {"2 files", "merge"}},
      {"unknown key", value("gemma4.novelty", gguf_u32(1)), E::unknown_key, {"gemma4.novelty"}},
      {"no layers", value("gemma4.block_count", gguf_u32(0)), E::bad_value, {"block_count"}},
      {"many layers", value("gemma4.block_count", gguf_u32(9999)), E::bad_value, {"9999"}},
      {"layers of text",
       value("gemma4.block_count", gguf_text("8")),
       E::wrong_type,
       {"block_count"}},
      {"a layer more", value("gemma4.block_count", gguf_u32(9)), E::bad_value, {"9 layers"}},
      {"no pattern",
       without("gemma4.attention.sliding_window_pattern"),
       E::missing_key,
       {"sliding_window_pattern"}},
      {"no head_dim",
       without("gemma4.attention.key_length_swa"),
       E::missing_key,
       {"key_length_swa"}},
      {"other values",
       value("gemma4.attention.value_length", gguf_u32(16)),
       E::unsupported,
       {"value_length", "expected 32"}},
      {"partial rotation",
       value("gemma4.rope.dimension_count_swa", gguf_u32(8)),
       E::unsupported,
       {"dimension_count_swa"}},
      {"experts", value("gemma4.expert_count", gguf_u32(4)), E::unsupported, {"expert_count"}},
      {"widths",
       value("gemma4.feed_forward_length", gguf_array(std::vector<std::string>(7, gguf_u32(96)))),
       E::bad_value,
       {"feed_forward_length", "found 7"}},
      {"uneven widths",
       [](GgufContent& gguf) {
         std::vector<std::string> widths(8, gguf_u32(96));
         widths[7] = gguf_u32(100);
         gguf.value("gemma4.feed_forward_length") = gguf_array(widths);
       },
       E::unsupported,
       {"layer 6", "expected 192, found 96"}},
      {"hidden of another size",
       value("gemma4.embedding_length", gguf_u32(128)),
       E::malformed_checkpoint,
       {"token_embd.weight", "128"}},
      {"vocabulary", value("gemma4.vocab_size", gguf_u32(600)), E::unsupported, {"vocab_size"}},
      {"softcap of nothing",
       value("gemma4.final_logit_softcapping", gguf_f32(0)),
       E::bad_value,
       {"softcapping"}},
      {"epsilon that is not finite",
       value("gemma4.attention.layer_norm_rms_epsilon", gguf_f32(INFINITY)),
       E::wrong_type,
       {"epsilon"}},
      {"no rope factors",
       [](GgufContent& gguf) { gguf.tensors.erase(gguf.tensors.begin()); },
       E::malformed_checkpoint,
       {"rope_freqs.weight"}},
      {"other rope factors",
       [](GgufContent& gguf) { gguf.tensor("rope_freqs.weight").bytes[0] = 1; },
       E::unsupported,
       {"rope_freqs.weight"}},
      {"tensor missing",
       [](GgufContent& gguf) {
         std::erase_if(gguf.tensors, [](const auto& t) { return t.name == "blk.3.ffn_up.weight"; });
       },
       E::malformed_checkpoint,
       {"missing", "layers.3.mlp.up_proj"}},
      {"tensor of another model",
       [](GgufContent& gguf) { gguf.tensor("output_norm.weight").name = "output.weight"; },
       E::malformed_checkpoint,
       {"output.weight"}},
      {"layer that is not there",
       [](GgufContent& gguf) {
         gguf.tensors.push_back({"blk.9.attn_q.weight", 0, {1}, "abcd"});
       },
       E::malformed_checkpoint,
       {"blk.9.attn_q.weight"}},
      {"number with a zero in front",
       [](GgufContent& gguf) { gguf.tensor("blk.3.ffn_up.weight").name = "blk.03.ffn_up.weight"; },
       E::malformed_checkpoint,
       {"blk.03.ffn_up.weight"}},
      {"shape turned",
       [](GgufContent& gguf) {
         std::reverse(gguf.tensor("blk.0.ffn_up.weight").shape.begin(),
                      gguf.tensor("blk.0.ffn_up.weight").shape.end());
       },
       E::malformed_checkpoint,
       {"blk.0.ffn_up.weight", "[96, 64]", "[64, 96]"}},
      {"type that is not read",
       retype("blk.0.ffn_up.weight", 20, 96 * 2 * 18),
       E::unsupported,
       {"blk.0.ffn_up.weight", "IQ4_NL"}},
      {"quantized norm",
       retype("blk.0.attn_norm.weight", 8, 2 * 34),
       E::unsupported,
       {"blk.0.attn_norm.weight", "Q8_0"}},
      {"weights of integers",
       retype("blk.0.ffn_up.weight", 26, 96 * 64 * 4),
       E::unsupported,
       {"I32"}},
  };
  const GgufContent whole =
      content(tiny_config(eight_layers), random_tensors(tiny_config(eight_layers)));
  for (const Refusal& test : cases) {
    GgufContent gguf = whole;
    test.damage(gguf);
    EXPECT_TRUE(refused(run(gguf), test.code, test.words)) << test.why;
    EXPECT_FALSE(fs::exists(out("gguf"))) << test.why;
  }
  EXPECT_TRUE(accepted(run(whole)));
}

TEST_F(GgufExport, TokenizersThatAreNotBuilt) {
  const auto value = [](const char* key, std::string bytes) {
    return [=](GgufContent& gguf) { gguf.value(std::string("tokenizer.ggml.") + key) = bytes; };
  };
  const auto without = [](const char* key) {
    return [=](GgufContent& gguf) { gguf.remove(std::string("tokenizer.ggml.") + key); };
  };
  using E = ErrorCode;
  const std::vector<std::string> kinds(512, gguf_i32(1));
  const Refusal cases[] = {
      {"another model", value("model", gguf_text("gpt2")), E::unsupported, {"gpt2"}},
      {"no tokens", without("tokens"), E::missing_key, {"tokens"}},
      {"tokens of numbers", value("tokens", gguf_array({gguf_u32(1)})), E::wrong_type, {"tokens"}},
      {"no merges", without("merges"), E::missing_key, {"merges"}},
      {"merge of one", value("merges", gguf_texts({"th"})), E::malformed_text, {"merges[0]", "th"}},
      {"merge to no token", value("merges", gguf_texts({"t x"})), E::malformed_text, {"merges[0]"}},
      {"types", value("token_type", gguf_array(kinds)), E::malformed_text, {"512 types"}},
      {"type 7",
       [](GgufContent& gguf) {
         std::string& types = gguf.value("tokenizer.ggml.token_type");
         types[16] = 7;
       },
       E::bad_value,
       {"token_type", "[0]", "found 7"}},
      {"token twice",
       [](GgufContent& gguf) {
         std::string& tokens = gguf.value("tokenizer.ggml.tokens");
         tokens.replace(tokens.find("<eos>"), 5, "<bos>");
       },
       E::malformed_text,
       {"<bos>"}},
      {"no BOS", without("bos_token_id"), E::missing_key, {"bos_token_id"}},
      {"BOS that is text", value("bos_token_id", gguf_u32(270)), E::malformed_text, {"model.gguf"}},
      {"EOS beyond", value("eos_token_id", gguf_u32(4096)), E::bad_value, {"eos_token_id"}},
      {"a space in front",
       value("add_space_prefix", gguf_bool(true)),
       E::unsupported,
       {"add_space_prefix"}},
      {"EOS behind", value("add_eos_token", gguf_bool(true)), E::unsupported, {"add_eos_token"}},
      {"no BOS in front",
       value("add_bos_token", gguf_bool(false)),
       E::unsupported,
       {"add_bos_token"}},
  };
  const GgufContent whole =
      content(tiny_config(eight_layers), random_tensors(tiny_config(eight_layers)));
  for (const Refusal& test : cases) {
    GgufContent gguf = whole;
    test.damage(gguf);
    EXPECT_TRUE(refused(run(gguf), test.code, test.words)) << test.why;
  }
}

}  // namespace
}  // namespace tandem::test
