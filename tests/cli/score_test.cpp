// tandem score against a calculation of its own, made from what `tandem logits` writes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"

namespace tandem::test {
namespace {

constexpr size_t context = 12;
constexpr const char* text =
    "The capital of France is Paris, and the capital of Germany is Berlin.\nR\u00e9union.";

class CliScore : public ::testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view content) const {
    write_file(folder_.path() / name, content);
    return (folder_.path() / name).string();
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  TemporaryFolder folder_;
};

std::vector<uint32_t> text_ids() {
  const Outcome outcome = tandem("tokenize '" + atlas_folder + "' -p '" + text + "'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::istringstream last(outcome.out.substr(outcome.out.rfind('\n', outcome.out.size() - 2) + 1));
  std::vector<uint32_t> ids;
  for (std::string id; std::getline(last, id, ',');)
    ids.push_back(static_cast<uint32_t>(std::stoul(id)));
  return ids;
}

// The sum over the ids but the first, each after those before it. Softcapped logits are at most 30,
// so no exponential overflows.
double window_nll(const std::vector<uint32_t>& ids, const std::string& file) {
  std::string list;
  for (const uint32_t id : ids) list += (list.empty() ? "" : ",") + std::to_string(id);
  const Outcome outcome =
      tandem("logits '" + atlas_folder + "' --device cpu --kv f32 --context " +
             std::to_string(context) + " --all-rows --ids " + list + " -o '" + file + "'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::string bytes = read_text(file);
  const size_t vocabulary = 8192, data = bytes.size() - ids.size() * vocabulary * 4;
  double nll = 0;
  for (size_t row = 0; row + 1 < ids.size(); ++row) {
    std::vector<float> logits(vocabulary);
    std::memcpy(logits.data(), &bytes[data + row * vocabulary * 4], vocabulary * 4);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit});
    nll -= std::log(std::exp(double{logits[ids[row + 1]]}) / sum);
  }
  return nll;
}

// Two full windows and a short one. The devices' bound follows from 1e-4 of the logits' scale,
// which is at most 30.
TEST_F(CliScore, EqualsTheLogitsOfEachWindow) {
  const std::vector<uint32_t> ids = text_ids();
  const size_t tokens = ids.size() - 1, windows = (tokens + context - 2) / (context - 1);
  ASSERT_EQ(windows, 3u);
  ASSERT_NE(tokens % (context - 1), 0u);
  double nll = 0;
  for (size_t begin = 1; begin < ids.size(); begin += context - 1) {
    std::vector<uint32_t> window = {2};
    for (size_t i = begin; i < std::min(begin + context - 1, ids.size()); ++i)
      window.push_back(ids[i]);
    nll += window_nll(window, path("logits" + std::to_string(begin)));
  }
  const double expected = nll / static_cast<double>(tokens);
  const std::string file = write("text", text);
  for (const auto& [device, bound] :
       {std::pair<std::string, double>{"--device cpu", 1e-6},
        {"--adapter '" + adapter_name() + "' --input-bound 32", 3e-3}}) {
    const Outcome outcome =
        tandem("score '" + atlas_folder + "' '" + file + "' --json --kv f32 --context " +
               std::to_string(context) + " " + device);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
    const nlohmann::json json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json.at("tokens"), tokens);
    EXPECT_EQ(json.at("windows"), windows);
    EXPECT_EQ(json.at("context"), context);
    EXPECT_NEAR(json.at("mean_nll"), expected, bound) << device;
    EXPECT_NEAR(json.at("perplexity"), std::exp(expected), bound * std::exp(expected) * 1.1);
    EXPECT_GT(json.at("tokens_per_second"), 0);
  }
}

TEST_F(CliScore, PrintsForPeople) {
  const std::string file = write("text", "Paris");
  const Outcome outcome =
      tandem("score '" + atlas_folder + "' '" + file + "' --device cpu --context 64");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part : {"tokens in 1 window of", "nats", "perplexity", "tokens/s", "cpu"})
    EXPECT_TRUE(contains(outcome.out, part)) << part << " in\n" << outcome.out;
}

TEST_F(CliScore, Refusals) {
  struct Case {
    std::string file;
    std::string context;
    std::string error;
  };
  for (const Case& c : std::vector<Case>{{write("empty", ""), "64", "invalid_argument"},
                                         {write("bos", "<bos>"), "64", "invalid_argument"},
                                         {write("latin1", "R\xe9union"), "64", "offset 1"},
                                         {write("cut", "R\xc3"), "64", "malformed_text"},
                                         {path("missing"), "64", "not_found"},
                                         {write("text", "Paris"), "1", "--context"}}) {
    const Outcome outcome =
        tandem("score '" + atlas_folder + "' '" + c.file + "' --device cpu --context " + c.context);
    EXPECT_EQ(outcome.status, 1) << c.file;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    EXPECT_TRUE(contains(outcome.err, c.error)) << c.file << "\n" << outcome.err;
  }
  EXPECT_EQ(tandem("score '" + atlas_folder + "'").status, 2);
}

}  // namespace
}  // namespace tandem::test
