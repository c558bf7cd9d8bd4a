// What a generation_config.json may say about the end of an answer.
#include "text/stop_set.h"

#include <gtest/gtest.h>

#include "support/golden.h"

namespace tandem::text {
namespace {

using Ids = std::vector<uint32_t>;

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

}  // namespace
}  // namespace tandem::text
