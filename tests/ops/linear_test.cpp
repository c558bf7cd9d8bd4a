// The matrix product on the GPU against its reference, and its routes against each other.
#include "ops/linear/linear.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "ops/harness.h"
#include "ops/linear/linear_tuning.h"
#include "ops/quantize/quantize.h"
#include "support/compare.h"

namespace tandem::ops {
namespace {

using spec::WeightType;
using test::expect_value;
using test::test_device;

constexpr WeightType types[] = {WeightType::q4_0, WeightType::q8_0, WeightType::f16,
                                WeightType::f32};
constexpr Epilogue epilogues[] = {Epilogue::none, Epilogue::gelu_pair, Epilogue::gelu_times,
                                  Epilogue::softcap};
constexpr RowRoute routes[] = {RowRoute::one, RowRoute::few, RowRoute::many};

// Rounding of f32 sums: a chain of n additions strays by about sqrt(n) * 2^-24 of the result's
// scale; the longest here, 6144 / 4 in the tiled route, by 2.4e-6.
constexpr double tolerance = 5e-6;

constexpr float softcap = 30;

struct Case {
  WeightType type;
  uint32_t rows;  // of the weights
  uint32_t columns;
  Epilogue epilogue = Epilogue::none;
  RowRoute route = RowRoute::one;
  uint32_t live = 1;
  uint32_t capacity = 0;       // rows of x and y; 0: as many as are live
  uint32_t rows_per_part = 0;  // 0: one part
  uint32_t lanes = 0;          // 0: the software adapter's choice, 1
  uint32_t ahead = 0;          // 0: what suits the shape
  RowFormat x_format = RowFormat::columns;
  uint32_t unit_rows = 12288;
  RowFormat y_format = RowFormat::columns;
  RowTile tile = {};  // of `many`

  uint32_t max_rows() const { return std::max({capacity, live, 1u}); }
  uint32_t outputs() const { return epilogue == Epilogue::gelu_pair ? rows / 2 : rows; }
};

std::string show(const Case& c) {
  return fmt::format(
      "{} [{}, {}], epilogue {}, route {}, {} rows, parts of {}, {} lanes, "
      "x format {}, tile {}x{}x{}",
      spec::name(c.type), c.rows, c.columns, int(c.epilogue), int(c.route), c.live, c.rows_per_part,
      c.lanes, int(c.x_format), c.tile.lines, c.tile.x_rows, c.tile.w_rows);
}

struct Data {
  test::TestMatrix weights;
  std::vector<float> x;
  std::vector<float> times;
};

Data random_data(const Case& c, uint32_t seed = 1) {
  return {test::random_matrix(c.type, c.rows, c.columns, seed),
          test::random_floats(size_t{c.max_rows()} * c.columns, seed + 1),
          test::random_floats(size_t{c.max_rows()} * c.outputs(), seed + 2)};
}

// An operator with the buffers it is bound to.
struct Bound {
  Linear op;
  test::GpuMatrix weights;
  gpu::Buffer step, x, times, y;
};

Bound bind(const Case& c, const Data& data, gpu::Device& device = test_device()) {
  Bound bound{{},
              test::upload(data.weights, c.rows_per_part, device),
              test::upload(Step{.rows = c.live}, device),
              test::upload_rows(c.x_format, c.columns, data.x, device),
              test::upload(data.times, device),
              test::poisoned(uint64_t{c.max_rows()} * c.outputs() * 4, device)};
  bound.op = {.weights = bound.weights.matrix,
              .epilogue = c.epilogue,
              .rows = c.route,
              .softcap = softcap,
              .lanes = c.lanes,
              .ahead = c.ahead,
              .unit_rows = c.unit_rows,
              .tile = c.tile,
              .step = bound.step.view(),
              .x = bound.x.view(),
              .x_format = c.x_format,
              .times = bound.times.view(),
              .y = bound.y.view(),
              .y_format = c.y_format,
              .max_rows = c.max_rows()};
  return bound;
}

// All of y, poison included.
std::vector<float> product(const Case& c, const Data& data, gpu::Device& device = test_device()) {
  const Bound bound = bind(c, data, device);
  gpu::CommandList commands(device);
  test::expect_success(record(commands, bound.op));
  test::run(commands, {.rows = c.max_rows()});
  return test::download(bound.y.view(), device);
}

std::vector<float> expected(const Case& c, const Data& data) {
  std::vector<float> y(size_t{c.live} * c.outputs());
  std::vector<float> x = data.x;
  if (c.x_format == RowFormat::int8) quantize_reference(c.columns, x);
  linear_reference(data.weights.host(), c.epilogue, softcap, c.live, x, data.times, y);
  return y;
}

// The live rows of y are as the reference's; the others were not written.
void expect_product(const Case& c, const Data& data, gpu::Device& device = test_device()) {
  const std::vector<float> y = product(c, data, device);
  const size_t live = size_t{c.live} * c.outputs();
  EXPECT_TRUE(test::close(std::span(y).first(live), expected(c, data), tolerance)) << show(c);
  for (size_t i = live; i < y.size(); ++i) {
    ASSERT_TRUE(test::is_poison(y[i])) << show(c) << " wrote [" << i << "]";
  }
}

TEST(LinearReference, IsTheDefinition) {
  // Rows: a, b = gate and up of one output.
  const std::vector<float> w = {1, 2, -1, 0.5f, 0, 1, 1, 1};
  const std::vector<float> x = {1, 1, 2, 2, -1, 0, 3, 1};
  const auto matrix = test::quantize(WeightType::f32, 2, 4, w);
  auto run = [&](Epilogue epilogue, size_t outputs, std::vector<float> times = {}) {
    std::vector<float> y(2 * outputs);
    linear_reference(matrix.host(), epilogue, softcap, 2, x, times, y);
    return y;
  };
  EXPECT_TRUE(test::close(run(Epilogue::none, 2), std::vector<float>{2, 5, -3.5f, 4}, 0));
  EXPECT_TRUE(
      test::close(run(Epilogue::gelu_pair, 1), std::vector<float>{9.7729885f, -0.0024648f}, 1e-6));
  EXPECT_TRUE(test::close(run(Epilogue::gelu_times, 2, {1, 0, 0, 2}),
                          std::vector<float>{1.9545977f, 0, 0, 7.9998595f}, 1e-6));
  EXPECT_TRUE(test::close(run(Epilogue::softcap, 2),
                          std::vector<float>{1.9970423f, 4.9542124f, -3.4842064f, 3.9764637f},
                          1e-6));
}

// Every type with every epilogue: an odd number of blocks, which two lanes share unevenly; rows
// that are no multiple of a workgroup's.
Case typed_case(WeightType type, Epilogue epilogue, RowRoute route, uint32_t live) {
  return {.type = type,
          .rows = 70,
          .columns = 96,
          .epilogue = epilogue,
          .route = route,
          .live = live,
          .lanes = 2};
}

TEST(Linear, AgreesForEveryTypeAndEpilogue) {
  for (WeightType type : types) {
    for (Epilogue epilogue : epilogues) {
      for (auto [route, live] :
           {std::pair{RowRoute::one, 1u}, {RowRoute::few, 3u}, {RowRoute::many, 17u}}) {
        const Case c = typed_case(type, epilogue, route, live);
        expect_product(c, random_data(c));
      }
    }
  }
}

TEST(Linear, AgreesForEveryShapeAndLanes) {
  constexpr auto one = RowRoute::one, few = RowRoute::few, many = RowRoute::many;
  constexpr auto none = Epilogue::none;
  const Case cases[] = {
      {WeightType::q4_0, 34, 32, none, one},  // one block a row, half a workgroup of rows
      {WeightType::q4_0, 34, 32, none, many, 3},
      {WeightType::q4_0, 64, 256, none, one, 1, 0, 0, 8},  // the atlas's widths
      {WeightType::q4_0, 10, 768, none, few, 4, 0, 0, 8},
      {WeightType::q4_0, 64, 512, none, many, 64},  // whole tiles
      {WeightType::q8_0, 66, 1536, none, few, 2, 0, 0, 16},
      {WeightType::q4_0, 66, 6144, none, one, 1, 0, 0, 32},  // several turns of every lane
      {WeightType::q4_0, 66, 6144, Epilogue::gelu_pair, one, 1, 0, 0, 32},  // a pair a workgroup
      {WeightType::q4_0, 300, 12288, none, many, 3},                        // E2B's widest
      {WeightType::q4_0, 8192, 256, none, one},                             // the atlas's head
      {WeightType::q4_0, 20, 1536, none, few, 3, 0, 0, 64, 3},  // E2B's turns, and uneven ones
      {WeightType::q4_0, 20, 1536, none, few, 3, 0, 0, 128, 2},
      {WeightType::q8_0, 20, 1056, none, few, 3, 0, 0, 32, 4},
      {WeightType::f16, 20, 1056, none, few, 3, 0, 0, 32, 3},
      {WeightType::f32, 20, 1060, none, few, 3, 0, 0, 32, 3},
      {WeightType::q4_0, 20, 12288, none, one, 1, 0, 0, 256, 3},
  };
  for (const Case& c : cases) expect_product(c, random_data(c));
}

TEST(Linear, TakesRowsInLaneOrder) {
  for (WeightType type : types) {
    for (uint32_t unit_rows : {0u, 12288u}) {
      for (auto [columns, lanes, ahead] :
           {std::array{96u, 2u, 1u}, {96u, 2u, 2u}, {256u, 8u, 1u}, {1536u, 8u, 3u}}) {
        for (uint32_t live : {1u, 3u}) {
          Case c{.type = type,
                 .rows = 70,
                 .columns = columns,
                 .epilogue = Epilogue::gelu_pair,
                 .route = live == 1 ? RowRoute::one : RowRoute::few,
                 .live = live,
                 .lanes = lanes,
                 .ahead = ahead,
                 .x_format = RowFormat::lanes,
                 .unit_rows = unit_rows};
          expect_product(c, random_data(c));
        }
      }
    }
  }
}

TEST(Linear, TakesRowsOfInt8) {
  struct Int8Case {
    WeightType type;
    Epilogue epilogue;
    uint32_t columns, lanes, ahead, unit_rows = UINT32_MAX;
  };
  const Int8Case cases[] = {{WeightType::q4_0, Epilogue::none, 32, 1, 1},
                            {WeightType::q4_0, Epilogue::gelu_pair, 96, 2, 2},
                            {WeightType::q8_0, Epilogue::gelu_times, 256, 8, 1},
                            {WeightType::q4_0, Epilogue::softcap, 1536, 8, 3},
                            {WeightType::q4_0, Epilogue::none, 1536, 8, 3, 0},
                            {WeightType::q4_0, Epilogue::gelu_pair, 96, 2, 1, 0},
                            {WeightType::q8_0, Epilogue::gelu_pair, 96, 2, 1, 0}};
  for (const auto& [type, epilogue, columns, lanes, ahead, unit_rows] : cases) {
    for (auto [route, live] : {std::pair{RowRoute::one, 1u},
                               {RowRoute::few, 3u},
                               {RowRoute::few, 0u},
                               {RowRoute::many, 17u}}) {
      const Case c{.type = type,
                   .rows = 70,
                   .columns = columns,
                   .epilogue = epilogue,
                   .route = route,
                   .live = live,
                   .capacity = live + 1,
                   .rows_per_part = columns == 256 ? 64u : 0u,
                   .lanes = lanes,
                   .ahead = ahead,
                   .x_format = RowFormat::int8,
                   .unit_rows = unit_rows};
      expect_product(c, random_data(c));
    }
  }
}

// Weight rows and live rows around the edges of tiles, units that turns and teams share unevenly.
TEST(Linear, AgreesForEveryTileOfInt8) {
  constexpr RowTile large{8, 8, 4, 1}, small{4, 8, 4, 2}, alone{4, 8, 4, 1};
  struct Edge {
    RowTile tile;
    WeightType type;
    uint32_t rows, columns, live;
    Epilogue epilogue;
  };
  const Edge edges[] = {{large, WeightType::q4_0, 2, 32, 1, Epilogue::gelu_pair},
                        {large, WeightType::q4_0, 63, 64, 63, Epilogue::none},
                        {large, WeightType::q8_0, 64, 96, 64, Epilogue::gelu_pair},
                        {large, WeightType::q8_0, 65, 128, 65, Epilogue::softcap},
                        {large, WeightType::q4_0, 130, 160, 129, Epilogue::gelu_times},
                        {small, WeightType::q4_0, 63, 32, 31, Epilogue::none},
                        {small, WeightType::q4_0, 64, 96, 32, Epilogue::gelu_pair},
                        {small, WeightType::q8_0, 66, 160, 33, Epilogue::gelu_times},
                        {small, WeightType::q4_0, 129, 1536, 150, Epilogue::none},
                        {alone, WeightType::q8_0, 66, 96, 33, Epilogue::none}};
  for (const auto& [tile, type, rows, columns, live, epilogue] : edges) {
    const Case c{.type = type,
                 .rows = rows,
                 .columns = columns,
                 .epilogue = epilogue,
                 .route = RowRoute::many,
                 .live = live,
                 .capacity = live + 1,
                 .x_format = RowFormat::int8,
                 .tile = tile};
    expect_product(c, random_data(c));
  }
}

TEST(Linear, TakesRowsOfInt8WithoutDp4a) {
  const auto device = test::open_device({.disabled = {.dp4a = true}});
  for (WeightType type : {WeightType::q4_0, WeightType::q8_0}) {
    for (RowRoute route : {RowRoute::few, RowRoute::many}) {
      const Case c{.type = type,
                   .rows = 70,
                   .columns = 96,
                   .route = route,
                   .live = 3,
                   .x_format = RowFormat::int8};
      expect_product(c, random_data(c), *device);
    }
  }
}

TEST(Linear, WritesRowsOfInt8) {
  for (auto [lanes, rows_per_part] : {std::pair{0u, 0u}, {2u, 128u}, {16u, 0u}}) {
    for (uint32_t live : {1u, 4u}) {
      {
        Case c{.type = WeightType::q4_0,
               .rows = 320,
               .columns = 96,
               .epilogue = Epilogue::gelu_pair,
               .route = live == 1 ? RowRoute::one : RowRoute::few,
               .live = live,
               .rows_per_part = rows_per_part,
               .lanes = lanes,
               .x_format = RowFormat::int8};
        const Data data = random_data(c);
        const std::vector<float> values = product(c, data);
        c.y_format = RowFormat::int8;
        const std::vector<float> y = product(c, data);
        std::vector<uint32_t> words(y.size());
        std::transform(y.begin(), y.end(), words.begin(), std::bit_cast<uint32_t, float>);
        EXPECT_TRUE(test::is_int8(words, c.outputs(), values)) << show(c);
      }
    }
  }
}

TEST(Linear, ARowOfInt8HasTheSameBitsAloneAndAmongOthers) {
  for (RowFormat y_format : {RowFormat::columns, RowFormat::int8}) {
    Case few{.type = WeightType::q4_0,
             .rows = 320,
             .columns = 1536,
             .epilogue = Epilogue::gelu_pair,
             .route = RowRoute::few,
             .live = 3,
             .lanes = 16,
             .x_format = RowFormat::int8,
             .y_format = y_format};
    const Data data = random_data(few);
    const std::vector<float> together = product(few, data);
    Case one = few;
    one.route = RowRoute::one, one.live = 1;
    for (uint32_t row = 0; row < 3; ++row) {
      const auto x = data.x.begin() + row * few.columns;
      const Data alone{data.weights, {x, x + few.columns}, data.times};
      EXPECT_TRUE(test::same_bits(product(one, alone),
                                  std::span(together).subspan(row * few.outputs(), few.outputs())))
          << row;
    }
  }
}

TEST(Linear, AgreesForEveryCountOfRowsAndLeavesTheOthersAlone) {
  for (auto [route, counts] : {std::pair{RowRoute::one, std::vector<uint32_t>{0, 1}},
                               {RowRoute::few, {0, 1, 2, 3, 4}},
                               {RowRoute::many, {0, 1, 2, 3, 4, 5, 17, 33, 63, 64, 65, 70}}}) {
    for (uint32_t live : counts) {
      const Case c{WeightType::q4_0, 80, 64, Epilogue::none, route, live, live + 2};
      expect_product(c, random_data(c));
    }
  }
}

TEST(Linear, FloatWeightsNeedNoWholeBlocks) {
  const std::pair<WeightType, uint32_t> shapes[] = {
      {WeightType::f16, 8}, {WeightType::f16, 104}, {WeightType::f32, 4}, {WeightType::f32, 100}};
  for (auto [type, columns] : shapes) {
    for (RowRoute route : routes) {
      const Case c{.type = type, .rows = 7, .columns = columns, .route = route, .lanes = 2};
      expect_product(c, random_data(c));
    }
  }
}

TEST(Linear, ARowHasTheSameBitsAloneAndAmongOthers) {
  for (WeightType type : types) {
    for (Epilogue epilogue : epilogues) {
      const Case few = typed_case(type, epilogue, RowRoute::few, 4);
      const Case one = typed_case(type, epilogue, RowRoute::one, 1);
      const Data data = random_data(few);
      const std::vector<float> together = product(few, data);
      for (uint32_t row = 0; row < 4; ++row) {
        auto slice = [&](const std::vector<float>& values, size_t size) {
          return std::vector<float>(values.begin() + row * size, values.begin() + (row + 1) * size);
        };
        const Data alone{data.weights, slice(data.x, one.columns),
                         slice(data.times, one.outputs())};
        EXPECT_TRUE(test::same_bits(product(one, alone), slice(together, one.outputs())))
            << show(few) << ", row " << row;
      }
    }
  }
}

TEST(Linear, PartsGiveTheBitsOfTheWhole) {
  // 64 rows of 3 blocks each, and a last part of 6 rows. gelu_pair turns 64 weight rows into 32
  // outputs, half of a binding's alignment.
  for (auto [type, epilogue] : {std::pair{WeightType::q4_0, Epilogue::none},
                                {WeightType::q4_0, Epilogue::gelu_pair},
                                {WeightType::q8_0, Epilogue::gelu_times},
                                {WeightType::f16, Epilogue::none}}) {
    for (RowRoute route : routes) {
      for (RowFormat x_format : {RowFormat::columns, RowFormat::int8}) {
        if (x_format == RowFormat::int8 && !takes_int8(type)) continue;
        Case c{.type = type,
               .rows = 198,
               .columns = 96,
               .epilogue = epilogue,
               .route = route,
               .live = route == RowRoute::one ? 1u : 3u,
               .x_format = x_format};
        const Data data = random_data(c);
        const std::vector<float> whole = product(c, data);
        c.rows_per_part = 64;
        EXPECT_TRUE(test::same_bits(product(c, data), whole)) << show(c);
      }
    }
  }
}

TEST(Linear, TakesTheLargestAndSmallestScales) {
  // Quants 0 .. 15 in turn, with fp16's largest, smallest normal and a negative scale.
  test::TestMatrix weights{WeightType::q4_0, 3, 32, {}, {}};
  for (int i = 0; i < 3 * 16; ++i) weights.values.push_back(std::byte(i * 17 & 255));
  for (int byte : {0xff, 0x7b, 0x00, 0x04, 0x00, 0xc4}) weights.scales.push_back(std::byte(byte));
  for (auto [route, x_format] : {std::pair{RowRoute::one, RowFormat::columns},
                                 {RowRoute::few, RowFormat::columns},
                                 {RowRoute::many, RowFormat::columns},
                                 {RowRoute::few, RowFormat::int8},
                                 {RowRoute::many, RowFormat::int8}}) {
    const Case c{
        .type = WeightType::q4_0, .rows = 3, .columns = 32, .route = route, .x_format = x_format};
    const Data data{weights, test::random_floats(32, 3), std::vector<float>(3)};
    const std::vector<float> y = product(c, data);
    const std::vector<float> reference = expected(c, data);
    // Row by row, for each has a scale of its own.
    for (size_t row = 0; row < 3; ++row) {
      EXPECT_TRUE(test::close(std::span(y).subspan(row, 1), std::span(reference).subspan(row, 1),
                              tolerance))
          << "row " << row;
      EXPECT_NE(reference[row], 0);
    }
  }
}

// Weights that hand x on: outputs o = x[o], or for pairs (x[o], 1).
Case identity_case(Epilogue epilogue, RowRoute route, uint32_t count) {
  return {WeightType::f32, epilogue == Epilogue::gelu_pair ? 2 * count : count, count + 4, epilogue,
          route};
}
Data identity_data(const Case& c, std::span<const float> values) {
  const uint32_t step = c.epilogue == Epilogue::gelu_pair ? 2 : 1;
  std::vector<float> weights(size_t{c.rows} * c.columns);
  for (size_t o = 0; o < values.size(); ++o) {
    weights[o * step * c.columns + o] = 1;
    if (step == 2) weights[(o * step + 1) * c.columns + values.size()] = 1;
  }
  std::vector<float> x(values.begin(), values.end());
  x.resize(c.columns, 1);
  return {test::quantize(c.type, c.rows, c.columns, weights), x,
          std::vector<float>(values.size(), 1)};
}

TEST(Linear, GeluIsFiniteAndExactFarFromZero) {
  const std::vector<float> values = {-1000, -44, -13.24f, -8, -5,     -3, -1,   0,
                                     1e-3f, 1,   3,       5,  13.24f, 44, 1000, 3e4f};
  for (RowRoute route : routes) {
    for (Epilogue epilogue : {Epilogue::gelu_pair, Epilogue::gelu_times}) {
      const Case c = identity_case(epilogue, route, 16);
      const Data data = identity_data(c, values);
      const std::vector<float> y = product(c, data);
      const std::vector<float> reference = expected(c, data);
      for (size_t i = 0; i < values.size(); ++i) {
        // tanh is good to 2^-20 absolutely, so the error grows with the argument.
        const double bound = 1e-6 * std::max(1.0f, std::abs(values[i]));
        EXPECT_LE(std::abs(double{y[i]} - double{reference[i]}), bound)
            << show(c) << ": gelu(" << values[i] << ") = " << y[i] << ", not " << reference[i];
      }
    }
  }
}

TEST(Linear, SoftcapSaturates) {
  const std::vector<float> values = {124, -124, 0, 1, -1, 30, 1000, -1e6f};
  for (RowRoute route : routes) {
    const Case c = identity_case(Epilogue::softcap, route, 8);
    const std::vector<float> y = product(c, identity_data(c, values));
    EXPECT_NEAR(y[0], 29.9846, 1e-4);
    EXPECT_TRUE(test::close(y, expected(c, identity_data(c, values)), 1e-6));
    EXPECT_TRUE(test::close(std::span(y).last(2), std::vector<float>{30, -30}, 1e-6));
  }
}

TEST(Linear, RefusesWhatItsKernelsCannotCompute) {
  struct Refusal {
    const char* why;
    Case c;
    void (*spoil)(Linear&);
  };
  const Case q4{WeightType::q4_0, 64, 64, Epilogue::gelu_times, RowRoute::few, 4};
  const Refusal refusals[] = {
      {"x is too small", q4, [](Linear& op) { op.x.bytes -= 4; }},
      {"y is too small", q4, [](Linear& op) { op.y.bytes -= 4; }},
      {"times is too small", q4, [](Linear& op) { op.times.bytes -= 4; }},
      {"quants are too small", q4, [](Linear& op) { op.weights.parts[0].values.bytes -= 4; }},
      {"scales are too small", q4, [](Linear& op) { op.weights.parts[0].scales.bytes -= 4; }},
      {"scales are missing", q4, [](Linear& op) { op.weights.parts[0].scales = {}; }},
      {"a part reaches beyond the matrix", q4,
       [](Linear& op) { op.weights.parts[0].first_row = 2; }},
      {"a softcap of 0", q4,
       [](Linear& op) {
         op.epilogue = Epilogue::softcap;
         op.softcap = 0;
       }},
      {"lanes that do not halve", q4, [](Linear& op) { op.lanes = 12; }},
      {"more lanes than invocations", q4, [](Linear& op) { op.lanes = 128, op.workgroup = 64; }},
      {"a workgroup that is too large", q4, [](Linear& op) { op.workgroup = 512; }},
      {"lane order for the tiled route", q4,
       [](Linear& op) { op.x_format = RowFormat::lanes, op.rows = RowRoute::many; }},
      {"a tile of int8 that is too wide", q4,
       [](Linear& op) {
         op.x_format = RowFormat::int8, op.rows = RowRoute::many;
         op.tile = {8, 8, 8, 1};
       }},
      {"too many pieces ahead", q4, [](Linear& op) { op.ahead = 5; }},
      {"few rows that are many", q4, [](Linear& op) { op.few_rows = 5; }},
      {"half a word of fp16", {WeightType::f16, 4, 8}, [](Linear& op) { op.weights.columns = 4; }},
      {"no whole blocks", q4, [](Linear& op) { op.weights.columns = 48; }},
      {"a gate without its up", q4,
       [](Linear& op) {
         op.epilogue = Epilogue::gelu_pair;
         op.weights = op.weights.first_rows(63);
       }},
      {"more rows than x holds", q4, [](Linear& op) {
         op.rows = RowRoute::many;
         op.max_rows = 5;
       }}};
  for (const Refusal& refusal : refusals) {
    Bound bound = bind(refusal.c, random_data(refusal.c));
    gpu::CommandList commands(test_device());
    EXPECT_TRUE(record(commands, bound.op)) << refusal.why;
    refusal.spoil(bound.op);
    EXPECT_FALSE(record(commands, bound.op)) << refusal.why;
  }
}

Linear unbound(WeightType type, uint32_t rows, uint32_t columns) {
  return {.weights = {type, rows, columns, {{0, rows, {}, {}}}}};
}

TEST(LinearRoute, SingleAndFewRowsDifferInMAlone) {
  for (bool software : {false, true}) {
    gpu::AdapterInfo adapter;
    adapter.software = software;
    for (uint32_t columns : {32u, 256u, 512u, 768u, 1536u, 2048u, 6144u}) {
      Linear op = unbound(WeightType::q4_0, 128, columns);
      auto text = [&](RowRoute rows) {
        op.rows = rows;
        return describe(linear_route(op, op.weights.parts[0], adapter));
      };
      std::string few = text(RowRoute::few);
      ASSERT_NE(few.find(" M=4"), std::string::npos);
      EXPECT_EQ(text(RowRoute::one), few.replace(few.find(" M=4"), 4, " M=1"));
      EXPECT_EQ(text(RowRoute::many).substr(0, 13), "linear_tiled ");
    }
  }
}

TEST(LinearRoute, LanesFillTheGpuAndReadTheirPiecesAhead) {
  struct Expected {
    uint32_t rows, columns;
    const char* tiling;
  };
  const Expected cases[] = {{128, 32, "LANES=4 WORKGROUP=64 AHEAD=1"},
                            {1536, 256, "LANES=32 WORKGROUP=64 AHEAD=1"},
                            {2560, 1536, "LANES=128 WORKGROUP=128 AHEAD=2"},
                            {5120, 1536, "LANES=128 WORKGROUP=128 AHEAD=2"},
                            {24576, 1536, "LANES=32 WORKGROUP=64 AHEAD=3"},
                            {1536, 12288, "LANES=256 WORKGROUP=256 AHEAD=3"},
                            {262144, 1536, "LANES=16 WORKGROUP=64 AHEAD=4"}};
  for (const Expected& expected : cases) {
    const Linear op = unbound(WeightType::q4_0, expected.rows, expected.columns);
    const std::string text = describe(linear_route(op, op.weights.parts[0], {}));
    EXPECT_NE(text.find(expected.tiling), std::string::npos) << text;
  }
  Linear op = unbound(WeightType::q4_0, 24576, 1536);
  op.x_format = RowFormat::lanes;
  const std::string text = describe(linear_route(op, op.weights.parts[0], {}));
  EXPECT_NE(text.find("WORDS=4 "), std::string::npos) << text;
  EXPECT_NE(text.find("LANES=16 WORKGROUP=64 AHEAD=1"), std::string::npos) << text;
  op = unbound(WeightType::q4_0, 262144, 1536);
  op.x_format = RowFormat::lanes;
  const std::string head = describe(linear_route(op, op.weights.parts[0], {}));
  EXPECT_NE(head.find("LANES=8 WORKGROUP=64 AHEAD=2"), std::string::npos) << head;
}

TEST(LinearRoute, ASoftwareAdapterTakesLargeTiles) {
  gpu::AdapterInfo software;
  software.software = true;
  Linear op{.weights = {WeightType::q4_0, 256, 256, {}}, .rows = RowRoute::many, .max_rows = 64};
  const auto text = [&](const gpu::AdapterInfo& adapter) {
    return describe(linear_route(op, {0, 256, {}, {}}, adapter));
  };
  EXPECT_NE(text(software).find("LINES=8 TEAMS=1 X_ROWS=8 W_ROWS=8"), std::string::npos);
  EXPECT_NE(text({}).find("LINES=4 TEAMS=2"), std::string::npos);
  op.x_format = RowFormat::int8;
  EXPECT_NE(text(software).find("LINES=8 TEAMS=1"), std::string::npos);
}

TEST(LinearRoute, ATileOfInt8IsLargeWhereThatLeavesManyWorkgroups) {
  for (auto [rows, columns, tile] :
       {std::tuple{12288u, 1536u, "LINES=8 TEAMS=1"}, {1536u, 6144u, "LINES=4 TEAMS=2"}}) {
    Linear op = unbound(WeightType::q4_0, rows, columns);
    op.rows = RowRoute::many;
    op.x_format = RowFormat::int8;
    op.max_rows = 512;
    const std::string text = describe(linear_route(op, op.weights.parts[0], {}));
    EXPECT_EQ(text.substr(0, 18), "linear_tiled_int8 ");
    EXPECT_NE(text.find(tile), std::string::npos) << text;
  }
}

bool rows_are_bit_identical(gpu::Device& device, const Linear& op) {
  RowCheck check = expect_value(RowCheck::begin(device, op));
  return expect_value(check.identical(true)).value_or(false);
}

TEST(RowsAreBitIdentical, ForEveryKindOfShapeHere) {
  struct Shape {
    uint32_t rows, columns;
  };
  const Shape shapes[] = {{96, 32},   {512, 256},  {8192, 256}, {256, 512},
                          {256, 768}, {200, 1536}, {64, 6144}};
  for (const Shape& shape : shapes) {
    Linear op = unbound(WeightType::q4_0, shape.rows, shape.columns);
    const Route on_a_gpu = linear_route(op, op.weights.parts[0], {});
    for (const gpu::Constant& constant : on_a_gpu.constants) {
      if (constant.name == "LANES") op.lanes = static_cast<uint32_t>(constant.value);
    }
    EXPECT_TRUE(rows_are_bit_identical(test_device(), op)) << shape.rows << " x " << shape.columns;
  }
}

TEST(RowsAreBitIdentical, ForWholeUnits) {
  Linear op = unbound(WeightType::q4_0, 200, 1536);
  op.x_format = RowFormat::lanes;
  op.unit_rows = 0;
  op.lanes = 8;
  EXPECT_TRUE(rows_are_bit_identical(test_device(), op));
}

TEST(RowsAreBitIdentical, ForEveryTypeAndEpilogue) {
  for (WeightType type : types) {
    for (Epilogue epilogue : epilogues) {
      Linear op = unbound(type, 70, 96);
      op.epilogue = epilogue;
      op.softcap = softcap;
      op.lanes = 2;
      EXPECT_TRUE(rows_are_bit_identical(test_device(), op))
          << spec::name(type) << ", epilogue " << int(epilogue);
    }
  }
}

TEST(RowsAreBitIdentical, ForPartsOfTwoSizesAtSmallLimits) {
  // A binding holds three rows of y, and the weights of a part.
  gpu::Limits limits = test_device().info().limits;
  limits.max_binding_bytes = 3 * 600 * 4;
  const auto device = test::open_device({.limits = limits});
  Linear op = unbound(WeightType::q4_0, 600, 96);
  op.weights.parts = {{0, 128, {}, {}}, {512, 88, {}, {}}};
  EXPECT_TRUE(rows_are_bit_identical(*device, op));
}

TEST(LinearTuning, TimesEveryProductAndChoosesACutOfIt) {
  ASSERT_TRUE(test_device().info().timestamps);
  const Data large = random_data({WeightType::f32, 1024, 256}),
             small = random_data({WeightType::f32, 8, 32});
  const Bound a = bind({WeightType::f32, 1024, 256}, large);
  const Bound b = bind({WeightType::f32, 8, 32, Epilogue::gelu_pair}, small);
  const Linear products[] = {a.op, b.op};
  const TunedProducts tuned = expect_value(tune(test_device(), products, 3));
  ASSERT_EQ(tuned.size(), 2u);
  for (const Linear& op : products) {
    const auto found = tuned.find(shape(op));
    ASSERT_NE(found, tuned.end()) << shape(op);
    for (const TimedTiling& timed : {found->second.rules, found->second.chosen}) {
      EXPECT_TRUE(is_possible(timed.tiling));
      EXPECT_GE(timed.time.one, 0) << shape(op);
      EXPECT_GE(timed.time.few, 0) << shape(op);
    }
    EXPECT_EQ(found->second.rules.tiling, tiling(op, test_device().info()));
  }
  EXPECT_GT(tuned.find(shape(a.op))->second.rules.time.one, 0) << "a thousand times the other";
}

}  // namespace
}  // namespace tandem::ops
