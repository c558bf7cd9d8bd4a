// What a generation_config.json may say of sampling and of the end of an answer.
#include "text/generation_config.h"

#include <gtest/gtest.h>

#include "support/golden.h"

namespace tandem::text {
namespace {

using Ids = std::vector<uint32_t>;

Result<Ids> stop_ids(std::string_view json, std::string_view where, uint32_t vocabulary) {
  const auto config = read_generation_config(json, where, vocabulary);
  if (!config) return tl::unexpected<Error>(config.error());
  return config->stop_ids;
}

SampleOptions sampling(const std::string& keys) {
  return read_generation_config(R"({"eos_token_id": 1)" + keys + "}", "g", 1000).value().sampling;
}

TEST(StopIds, ReadsANumberOrAList) {
  EXPECT_EQ(stop_ids(R"({"eos_token_id": 1})", "g", 1000).value(), Ids{1});
  EXPECT_EQ(
      stop_ids(R"({"eos_token_id": [106, 1, 106], "top_k": 64, "novel": {}})", "g", 1000).value(),
      (Ids{1, 106}));
  const std::string atlas = test::read_text(std::string(TANDEM_SOURCE_DIR) +
                                            "/tests/golden/atlas/generation_config.json");
  EXPECT_EQ(stop_ids(atlas, "g", 1000).value(), (Ids{1, 5}));
}

TEST(StopIds, RefusesAllElse) {
  struct Case {
    const char* json;
    ErrorCode code;
  };
  for (const auto& [json, code] :
       {Case{R"({})", ErrorCode::missing_key},
        {R"({"eos_token_id": null})", ErrorCode::wrong_type},
        {R"({"eos_token_id": "1"})", ErrorCode::wrong_type},
        {R"({"eos_token_id": 1.5})", ErrorCode::wrong_type},
        {R"({"eos_token_id": true})", ErrorCode::wrong_type},
        {R"({"eos_token_id": [1, null]})", ErrorCode::wrong_type},
        {R"({"eos_token_id": {"a": 1}})", ErrorCode::wrong_type},
        {R"({"eos_token_id": []})", ErrorCode::bad_value},
        {R"({"eos_token_id": [1, 1000]})", ErrorCode::bad_value},
        {R"([1])", ErrorCode::wrong_type},
        {R"({"eos_token_id": 1, "eos_token_id": 2})", ErrorCode::malformed_json},
        {"", ErrorCode::malformed_json}}) {
    const auto ids = stop_ids(json, "generation_config.json", 1000);
    ASSERT_FALSE(ids) << json;
    EXPECT_EQ(name(ids.error().code), name(code)) << json << ": " << ids.error().message;
    EXPECT_NE(ids.error().message.find("generation_config.json"), std::string::npos) << json;
  }
  EXPECT_FALSE(stop_ids(R"({"eos_token_id": -1})", "g", 1000));
  EXPECT_FALSE(stop_ids(R"({"eos_token_id": 4294967296})", "g", 1000));
}

TEST(Sampling, IsGreedyUnlessTheConfigSamples) {
  for (const char* keys :
       {"", R"(, "do_sample": false, "temperature": 0.7)", R"(, "do_sample": null)"}) {
    EXPECT_EQ(sampling(keys).temperature, 0) << keys;
    EXPECT_EQ(sampling(keys).top_k, 0u) << keys;
  }
  const SampleOptions defaults = sampling(R"(, "do_sample": true)");
  EXPECT_EQ(defaults.temperature, 1);
  EXPECT_EQ(defaults.top_k, 50u);
  EXPECT_EQ(defaults.top_p, 1);
  const SampleOptions gemma =
      sampling(R"(, "do_sample": true, "temperature": 1, "top_k": 64, "top_p": 0.95)");
  EXPECT_EQ(gemma.temperature, 1);
  EXPECT_EQ(gemma.top_k, 64u);
  EXPECT_EQ(gemma.top_p, 0.95f);
  const SampleOptions all = sampling(
      R"(, "do_sample": true, "temperature": 0.5, "top_k": 0, "min_p": 0.1, "repetition_penalty": 1.2)");
  EXPECT_EQ(all.temperature, 0.5f);
  EXPECT_EQ(all.top_k, 0u);
  EXPECT_EQ(all.min_p, 0.1f);
  EXPECT_EQ(all.repetition_penalty, 1.2f);
}

// As in the files of real checkpoints.
TEST(Sampling, OtherKeysAreNamed) {
  const auto read = [](std::string_view json) {
    return read_generation_config(json, "g", 1000).value().ignored;
  };
  EXPECT_EQ(read(R"({"eos_token_id": 1, "do_sample": true, "temperature": 1.0, "top_k": 64,
                     "top_p": 0.95, "min_p": 0.0, "repetition_penalty": 1.0})"),
            std::vector<std::string>{});
  EXPECT_EQ(read(R"({"_from_model_config": true, "bos_token_id": 2, "cache_implementation":
                     "hybrid", "eos_token_id": [1, 106], "transformers_version": "5.5.0"})"),
            (std::vector<std::string>{"_from_model_config", "bos_token_id", "cache_implementation",
                                      "transformers_version"}));
}

TEST(Sampling, RefusesOtherTypes) {
  for (const char* keys : {R"("do_sample": 1)", R"("temperature": "1")", R"("top_k": 1.5)",
                           R"("top_k": -1)", R"("top_p": true)", R"("min_p": [0])"}) {
    const auto config = read_generation_config(std::string(R"({"eos_token_id": 1, )") + keys + "}",
                                               "generation_config.json", 1000);
    ASSERT_FALSE(config) << keys;
    EXPECT_EQ(name(config.error().code), "wrong_type") << config.error().message;
  }
}

TEST(Sampling, RefusesWhatTheEngineDoesNotTake) {
  for (const char* keys :
       {R"("top_p": 5)", R"("top_p": 0)", R"("min_p": 2)", R"("repetition_penalty": 0)",
        R"("do_sample": true, "temperature": -1)", R"("do_sample": true, "temperature": 1e308)"}) {
    const auto config = read_generation_config(std::string(R"({"eos_token_id": 1, )") + keys + "}",
                                               "generation_config.json", 1000);
    ASSERT_FALSE(config) << keys;
    EXPECT_EQ(name(config.error().code), "bad_value") << config.error().message;
  }
}

}  // namespace
}  // namespace tandem::text
