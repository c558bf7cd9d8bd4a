// The embedding gather on the GPU: its bits are the reference's.
#include "ops/embedding/embedding.h"

#include <gtest/gtest.h>

#include "ops/harness.h"
#include "support/compare.h"

namespace tandem::ops {
namespace {

using spec::WeightType;
using test::test_device;

constexpr WeightType types[] = {WeightType::q4_0, WeightType::q8_0, WeightType::f16,
                                WeightType::f32};
constexpr float scale = 15.9687194f;  // sqrt(255): no product with it is exact

struct Case {
  const char* why;
  uint32_t columns = 96;  // of the table
  uint32_t gathered = 96;
  uint32_t rows_per_part = 0;
  uint32_t position = 0;
  std::vector<uint32_t> tokens = {};  // of the live rows
};

constexpr uint32_t vocabulary = 200;
constexpr uint32_t spare_rows = 2;

struct Bound {
  Embedding op;
  test::GpuMatrix table;
  gpu::Buffer step, timeline, y;
};

Bound bind(const Case& c, const test::TestMatrix& table) {
  const auto live = static_cast<uint32_t>(c.tokens.size());
  // Before and after the live rows, the timeline holds tokens that must not be looked up.
  std::vector<uint32_t> timeline(c.position, 1);
  timeline.insert(timeline.end(), c.tokens.begin(), c.tokens.end());
  timeline.resize(timeline.size() + spare_rows, 1);
  Bound bound{{},
              test::upload(table, c.rows_per_part),
              test::upload(Step{.position = c.position, .rows = live}),
              test::upload(timeline),
              test::poisoned(uint64_t{live + spare_rows} * c.gathered * 4)};
  bound.op = {.table = bound.table.matrix,
              .columns = c.gathered,
              .scale = scale,
              .step = bound.step.view(),
              .timeline = bound.timeline.view(),
              .y = bound.y.view(),
              .max_rows = live + spare_rows};
  return bound;
}

void expect_gather(WeightType type, const Case& c) {
  SCOPED_TRACE(fmt::format("{}: {}", spec::name(type), c.why));
  const test::TestMatrix table = test::random_matrix(type, vocabulary, c.columns, 7);
  const Bound bound = bind(c, table);
  gpu::CommandList commands(test_device());
  test::expect_success(record(commands, bound.op));
  test::run(commands, {.rows = bound.op.max_rows});

  // What is not gathered keeps its poison.
  std::vector<float> expected(size_t{bound.op.max_rows} * c.gathered,
                              std::bit_cast<float>(test::poison_bits));
  embedding_reference(table.host(), c.gathered, scale, c.tokens, expected);
  EXPECT_TRUE(test::same_bits(test::download(bound.y.view()), expected));
}

TEST(Embedding, GathersExactly) {
  const Case cases[] = {
      {.why = "one row", .tokens = {42}},
      {.why = "first and last token, repeated tokens", .tokens = {0, 199, 5, 5, 0}},
      {.why = "rows from a later position", .position = 9, .tokens = {3, 2, 1}},
      {.why = "one block a row", .columns = 32, .gathered = 32, .tokens = {0, 1, 199}},
      {.why = "more columns than a workgroup takes in one turn",
       .columns = 1120,
       .gathered = 1120,
       .tokens = {17, 100}},
      {.why = "leading columns only", .columns = 128, .gathered = 64, .tokens = {8, 9}},
      {.why = "no row", .tokens = {}},
      {.why = "first and last rows of every part",
       .rows_per_part = 64,
       .tokens = {0, 63, 64, 127, 128, 191, 192, 199, 1}},
      {.why = "leading columns of parts",
       .gathered = 32,
       .rows_per_part = 128,
       .tokens = {127, 128}},
      {.why = "tokens beyond the vocabulary write nothing",
       .rows_per_part = 64,
       .tokens = {200, 3, 0xffffffffu, 255}},
  };
  for (WeightType type : types) {
    for (const Case& c : cases) expect_gather(type, c);
  }
}

TEST(Embedding, PositionsBeyondTheTimelineReadNothingOutsideIt) {
  const test::TestMatrix table = test::random_matrix(WeightType::q4_0, vocabulary, 32, 7);
  Case c{.why = "", .columns = 32, .gathered = 32, .tokens = {4}};
  Bound bound = bind(c, table);
  bound.step = test::upload(Step{.position = 1000, .rows = 1});
  bound.op.step = bound.step.view();
  gpu::CommandList commands(test_device());
  test::expect_success(record(commands, bound.op));
  test::run(commands, {.rows = 1});
  std::vector<float> last(32);  // the timeline's last token is 1
  embedding_reference(table.host(), 32, scale, std::vector<uint32_t>{1}, last);
  EXPECT_TRUE(test::same_bits(test::download(bound.y.view().part(0, 32 * 4)), last));
}

TEST(Embedding, RefusesWhatItsKernelCannotCompute) {
  struct Refusal {
    const char* why;
    void (*spoil)(Embedding&);
  };
  const Refusal refusals[] = {
      {"y is too small", [](Embedding& op) { op.y.bytes -= 4; }},
      {"quants are too small", [](Embedding& op) { op.table.parts[0].values.bytes -= 4; }},
      {"scales are missing", [](Embedding& op) { op.table.parts[0].scales = {}; }},
      {"more columns than the table has", [](Embedding& op) { op.columns = 128; }},
      {"no whole blocks", [](Embedding& op) { op.table.columns = op.columns = 80; }}};
  const test::TestMatrix table = test::random_matrix(WeightType::q4_0, vocabulary, 96, 7);
  for (const Refusal& refusal : refusals) {
    Bound bound = bind({.why = "", .tokens = {1}}, table);
    gpu::CommandList commands(test_device());
    EXPECT_TRUE(record(commands, bound.op)) << refusal.why;
    refusal.spoil(bound.op);
    EXPECT_FALSE(record(commands, bound.op)) << refusal.why;
  }
}

}  // namespace
}  // namespace tandem::ops
