// The residual step in the product after it: bit for bit what two kernels do, and near the
// reference.
#include "ops/linear_norm/linear_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ops/add_norm/add_norm.h"
#include "ops/harness.h"
#include "ops/quantize/quantize.h"
#include "ops/untouched.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

using spec::WeightType;

constexpr auto q4 = WeightType::q4_0, q8 = WeightType::q8_0, f16 = WeightType::f16;
constexpr auto columns = RowFormat::columns, lanes = RowFormat::lanes, int8 = RowFormat::int8;
constexpr float epsilon = 1e-6f;
constexpr float scalar = 0.375f;

struct Case {
  WeightType type;
  uint32_t rows;
  uint32_t hidden;
  const char* why;
  Epilogue epilogue = Epilogue::none;
  RowFormat y_format = columns;
  RowFormat x_format = int8;
  bool scaled = true;
  uint32_t lanes = 0;  // 0: the software adapter's choice
  uint32_t live = 1;
  uint32_t unit_rows = 12288;  // so many take whole units
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.why; }

struct Data {
  test::TestMatrix weights;
  std::vector<float> h, branch, weight, next_weight;
};

Data random_data(const Case& c) {
  return {test::random_matrix(c.type, c.rows, c.hidden, 1), test::random_floats(c.hidden, 2),
          test::random_floats(c.hidden, 3, 5), test::random_floats(c.hidden, 4),
          test::random_floats(c.hidden, 5)};
}

// An operator with the buffers it is bound to.
struct Bound {
  LinearNorm op;
  test::GpuMatrix weights;
  gpu::Buffer step, stream, weight, scalar, next_weight, next_h, y;
};

Bound bind(const Case& c, const Data& data, gpu::Device& device = test::test_device()) {
  // As the model has it: the branch behind h, where a binding may begin.
  const uint64_t begin = branch_begin(c.hidden);
  std::vector<float> stream(begin + c.hidden);
  std::copy(data.h.begin(), data.h.end(), stream.begin());
  std::copy(data.branch.begin(), data.branch.end(), stream.begin() + static_cast<ptrdiff_t>(begin));
  const uint32_t outputs = c.epilogue == Epilogue::gelu_pair ? c.rows / 2 : c.rows;
  Bound bound{{},
              test::upload(data.weights, 0, device),
              test::upload(Step{.rows = c.live}, device),
              test::upload(stream, device),
              test::upload(data.weight, device),
              test::upload(std::vector{scalar}, device),
              test::upload(data.next_weight, device),
              test::poisoned(c.hidden * sizeof(float), device),
              test::poisoned(outputs * sizeof(float), device)};
  bound.op = {.product = {.weights = bound.weights.matrix,
                          .epilogue = c.epilogue,
                          .few_rows = 3,
                          .lanes = c.lanes,
                          .unit_rows = c.unit_rows,
                          .step = bound.step.view(),
                          .x = {},
                          .x_format = c.x_format,
                          .times = {},
                          .y = bound.y.view(),
                          .y_format = c.y_format,
                          .max_rows = 1},
              .epsilon = epsilon,
              .stream = bound.stream.view(),
              .branch = begin,
              .weight = bound.weight.view(),
              .scalar = c.scaled ? bound.scalar.view() : gpu::View{},
              .next_weight = bound.next_weight.view(),
              .next_h = bound.next_h.view()};
  return bound;
}

struct Outputs {
  std::vector<float> h;
  std::vector<uint32_t> y;
};

Outputs together(const Bound& bound, gpu::Device& device = test::test_device()) {
  gpu::CommandList commands(device);
  test::expect_success(record(commands, bound.op));
  EXPECT_EQ(commands.dispatch_count(), 1u);
  test::run(commands, {.rows = 1});
  return {test::download(bound.next_h.view(), device),
          test::download_as<uint32_t>(bound.y.view(), device)};
}

// By add_norm and the product's route `few`, which a round with drafts takes.
Outputs apart(const Bound& bound, const Data& data) {
  const gpu::Buffer h = test::upload(data.h);
  const gpu::Buffer x = test::poisoned(data.h.size() * sizeof(float));
  const gpu::Buffer y = test::poisoned(bound.y.bytes());
  const uint32_t hidden = static_cast<uint32_t>(data.h.size());
  const uint64_t row = data.h.size() * sizeof(float);
  gpu::CommandList commands(test::test_device());
  test::expect_success(
      record(commands, AddNorm{.columns = hidden,
                               .epsilon = epsilon,
                               .step = bound.step.view(),
                               .x = bound.stream.view().part(bound.op.branch * sizeof(float), row),
                               .weight = bound.weight.view(),
                               .scalar = bound.op.scalar,
                               .h = h.view(),
                               .next_weight = bound.next_weight.view(),
                               .y = x.view(),
                               .y_format = bound.op.product.x_format,
                               .max_rows = 1}));
  Linear product = bound.op.product;
  product.rows = RowRoute::few;
  product.x = x.view(), product.y = y.view();
  test::expect_success(record(commands, product));
  test::run(commands, {.rows = 1});
  return {test::download(h.view()), test::download_as<uint32_t>(y.view())};
}

std::vector<float> as_floats(const std::vector<uint32_t>& words) {
  std::vector<float> floats(words.size());
  std::memcpy(floats.data(), words.data(), words.size() * sizeof(float));
  return floats;
}

class LinearNormCases : public ::testing::TestWithParam<Case> {};

TEST_P(LinearNormCases, HasTheBitsOfTwoKernels) {
  const Case& c = GetParam();
  const Data data = random_data(c);
  const Bound bound = bind(c, data);
  const Outputs one = together(bound), two = apart(bound, data);
  EXPECT_TRUE(test::same_bits(one.h, two.h));
  EXPECT_EQ(one.y, two.y);
}

TEST_P(LinearNormCases, AgreesWithTheReference) {
  const Case& c = GetParam();
  const Data data = random_data(c);
  const Bound bound = bind(c, data);
  std::vector<float> h = data.h, y(outputs(bound.op.product));
  linear_norm_reference(data.weights.host(), c.epilogue, c.x_format, epsilon, data.branch,
                        data.weight, c.scaled ? scalar : 1, h, data.next_weight, y);
  const Outputs actual = together(bound);
  EXPECT_TRUE(test::close(actual.h, h, 1e-6));
  if (c.x_format == lanes) {
    if (c.y_format == lanes) y = test::in_lane_order(y, static_cast<uint32_t>(y.size()));
    EXPECT_TRUE(test::close(as_floats(actual.y), y, 1e-5));
    return;
  }
  if (c.y_format == int8) {
    std::vector<float> values(y.size());
    values = int8_values(static_cast<uint32_t>(y.size()), actual.y);
    // The step of y's own units beside what x's may be off.
    EXPECT_TRUE(test::close(values, y, 2e-2));
    return;
  }
  // A value of x near a half may be rounded to the neighbouring step, 1 / 254 of its unit's
  // largest.
  EXPECT_TRUE(test::close(as_floats(actual.y), y, 5e-3));
}

INSTANTIATE_TEST_SUITE_P(
    All, LinearNormCases,
    ::testing::Values(
        Case{q4, 384, 256, "atlas: qkv"},
        Case{q4, 1536, 256, "atlas: gate and up", Epilogue::gelu_pair, int8, int8, false},
        Case{q4, 512, 1536, "E2B's width, 128 lanes", Epilogue::none, columns, int8, true, 128},
        Case{q4, 512, 1536, "E2B's width, whole units", Epilogue::gelu_pair, int8, int8, false, 16,
             1, 0},
        Case{q8, 200, 2560, "q8_0 of E4B's width", Epilogue::none, columns, int8, true, 64},
        Case{q8, 192, 96, "q8_0 in units", Epilogue::gelu_pair, columns, int8, true, 2, 1, 0},
        Case{q4, 66, 8192, "the widest", Epilogue::none, columns, int8, false, 256},
        Case{q4, 36, 1120, "units that are no pairs", Epilogue::none, columns, int8, true, 32},
        Case{q4, 6, 32, "one unit", Epilogue::gelu_pair},
        Case{q4, 2, 64, "fewer rows than a lane takes"},
        Case{q4, 384, 256, "f32, atlas: qkv", Epilogue::none, columns, lanes},
        Case{q4, 1536, 256, "f32, atlas: gate and up", Epilogue::gelu_pair, lanes, lanes, false},
        Case{q4, 512, 1536, "f32, E2B's width, 128 lanes", Epilogue::none, columns, lanes, true,
             128},
        Case{q4, 512, 1536, "f32, E2B's width, whole units", Epilogue::gelu_pair, lanes, lanes,
             false, 16, 1, 0},
        Case{q8, 200, 2560, "f32, q8_0 of E4B's width", Epilogue::none, columns, lanes, true, 64},
        Case{f16, 192, 96, "f32, f16", Epilogue::gelu_pair, lanes, lanes, true, 2},
        Case{WeightType::f32, 36, 160, "f32, f32", Epilogue::none, columns, lanes, true, 8},
        Case{q4, 66, 2784, "f32, the widest", Epilogue::none, columns, lanes, false, 256},
        Case{q4, 36, 1120, "f32, units that are no pairs", Epilogue::none, columns, lanes, true, 8,
             1, 0},
        Case{q4, 6, 32, "f32, one unit", Epilogue::gelu_pair, columns, lanes},
        Case{q4, 2, 64, "f32, fewer rows than a lane takes", Epilogue::none, columns, lanes}));

TEST(LinearNorm, HasTheSameBitsWithoutDp4a) {
  const auto device = test::open_device({.disabled = {.dp4a = true}});
  const Case c{q4, 192, 96, "", Epilogue::gelu_pair, int8};
  const Data data = random_data(c);
  const Outputs with = together(bind(c, data)), without = together(bind(c, data, *device), *device);
  EXPECT_TRUE(test::same_bits(without.h, with.h));
  EXPECT_EQ(without.y, with.y);
}

TEST(LinearNorm, AStoppedStepWritesNothing) {
  for (const RowFormat x_format : {int8, lanes}) {
    const Case c{q4, 64, 64, "", Epilogue::none, columns, x_format, true, 0, 0};
    const Outputs outputs = together(bind(c, random_data(c)));
    EXPECT_TRUE(test::untouched(std::span<const float>(outputs.h)));
    EXPECT_TRUE(test::untouched(std::span<const float>(as_floats(outputs.y))));
  }
}

TEST(LinearNorm, RefusesWhatItsKernelCannotCompute) {
  const Case good{q4, 64, 64, ""};
  const std::pair<const char*, void (*)(LinearNorm&)> refusals[] = {
      {"h without its branch", [](LinearNorm& op) { op.stream.bytes -= 4; }},
      {"a branch between quads", [](LinearNorm& op) { op.branch = 62; }},
      {"weight is too small", [](LinearNorm& op) { op.weight.bytes -= 4; }},
      {"next_weight is too small", [](LinearNorm& op) { op.next_weight.bytes -= 4; }},
      {"no scalar in its view", [](LinearNorm& op) { op.scalar.bytes = 0; }},
      {"next_h is too small", [](LinearNorm& op) { op.next_h.bytes -= 4; }},
      {"y is too small", [](LinearNorm& op) { op.product.y.bytes -= 4; }},
      {"x column by column", [](LinearNorm& op) { op.product.x_format = columns; }},
      {"several rows", [](LinearNorm& op) { op.product.rows = RowRoute::few; }},
      {"an epilogue with factors",
       [](LinearNorm& op) { op.product.epilogue = Epilogue::gelu_times; }},
      {"f16 with int8", [](LinearNorm& op) { op.product.weights.type = f16; }},
      {"no whole units", [](LinearNorm& op) { op.product.weights.columns = 48; }},
      {"two parts",
       [](LinearNorm& op) { op.product.weights.parts.push_back(op.product.weights.parts[0]); }}};
  for (const auto& [why, spoil] : refusals) {
    Bound bound = bind(good, random_data(good));
    gpu::CommandList commands(test::test_device());
    EXPECT_TRUE(record(commands, bound.op)) << why;
    spoil(bound.op);
    EXPECT_FALSE(record(commands, bound.op)) << why;
  }
}

TEST(LinearNorm, TakesRowsThatFitWorkgroupMemory) {
  Linear product{.weights = {q4, 64, 2784, {{0, 64, {}, {}}}}, .x_format = lanes};
  EXPECT_TRUE(takes_norm(product));
  product.weights.columns = 2816;
  EXPECT_FALSE(takes_norm(product));
  product.x_format = int8;
  EXPECT_TRUE(takes_norm(product));
}

TEST(LinearNorm, LeavesVeryManyRowsToAProductOfTheirOwn) {
  Linear head{.weights = {q4, 262144, 1536, {{0, 262144, {}, {}}}}, .x_format = int8};
  EXPECT_FALSE(takes_norm(head));
  head.weights.rows = head.weights.parts[0].rows = 24576;
  EXPECT_TRUE(takes_norm(head));
}

TEST(NormCheck, FindsThisDeviceToHaveTheBitsOfTwoKernels) {
  for (const Case& c : {Case{q4, 1536, 256, "", Epilogue::gelu_pair, int8},
                        Case{q8, 2048, 1536, "", Epilogue::none, columns, int8, true, 32},
                        Case{q4, 1536, 256, "", Epilogue::gelu_pair, lanes, lanes},
                        Case{q8, 2048, 1536, "", Epilogue::none, columns, lanes, true, 32},
                        Case{f16, 192, 96, "", Epilogue::gelu_pair, columns, lanes},
                        Case{WeightType::f32, 36, 160, "", Epilogue::none, columns, lanes}}) {
    const Bound bound = bind(c, random_data(c));
    auto check = NormCheck::begin(test::test_device(), bound.op.product, epsilon, c.scaled);
    ASSERT_TRUE(check) << check.error().message;
    const auto same = check->identical(true);
    ASSERT_TRUE(same) << same.error().message;
    EXPECT_EQ(*same, std::optional(true));
  }
}

}  // namespace
}  // namespace tandem::ops
