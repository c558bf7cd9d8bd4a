// Attention on the GPU, split and whole, against its reference in double.
#include "ops/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <tuple>

#include "base/half.h"
#include "ops/harness.h"
#include "ops/qkv_rope/qkv_rope.h"
#include "ops/untouched.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

struct Shape {
  uint32_t heads;
  uint32_t kv_heads;
  uint32_t head_dim;
  uint32_t window;
  uint32_t slots;
  KvType type;

  size_t row_size() const { return size_t{heads} * head_dim; }
  size_t slot_size() const { return size_t{kv_heads} * head_dim; }
  uint32_t begin(uint32_t position) const {
    return window == 0 ? 0 : position + 1 - std::min(position + 1, window);
  }
};

struct Cache {
  std::vector<float> keys, values;
};

// Keys and values for the positions begin .. end - 1, and NaN in every other slot.
Cache make_cache(const Shape& shape, uint32_t begin, uint32_t end) {
  const std::vector<float> garbage(shape.slots * shape.slot_size(),
                                   std::numeric_limits<float>::quiet_NaN());
  Cache cache{garbage, garbage};
  const auto fill = [&](std::vector<float>& plane, uint32_t position, uint32_t seed) {
    std::vector<float> values = test::random_floats(shape.slot_size(), seed);
    if (shape.type == KvType::f16) {
      for (float& value : values) value = from_half(to_half(value));
    }
    std::copy(values.begin(), values.end(),
              plane.begin() + position % shape.slots * shape.slot_size());
  };
  for (uint32_t position = begin; position < end; ++position) {
    fill(cache.keys, position, 2 * position);
    fill(cache.values, position, 2 * position + 1);
  }
  return cache;
}

gpu::Buffer upload_plane(KvType type, const std::vector<float>& plane) {
  if (type == KvType::f32) return test::upload(plane);
  std::vector<uint16_t> halves;
  for (float value : plane) halves.push_back(to_half(value));
  return test::upload(halves);
}

// An attention over one cache, recorded once for steps of up to max_rows rows.
class OnGpu {
 public:
  static constexpr uint32_t max_rows = 8;

  OnGpu(AttentionRoute route, const Shape& shape, const Cache& cache, uint32_t positions,
        uint32_t lag = 0, std::optional<QueryRope> rope = {},
        RowFormat y_format = RowFormat::columns, uint32_t queries = 1)
      : positions_(positions),
        row_size_(shape.row_size()),
        keys_(upload_plane(shape.type, cache.keys)),
        values_(upload_plane(shape.type, cache.values)),
        step_(test::upload(Step{})),
        q_(test::poisoned(max_rows * row_size_ * sizeof(float))),
        y_(test::poisoned(max_rows * row_size_ * sizeof(float))),
        commands_(test::test_device()) {
    Attention op = {.heads = shape.heads,
                    .kv_heads = shape.kv_heads,
                    .head_dim = shape.head_dim,
                    .window = shape.window,
                    .lag = lag,
                    .positions = positions,
                    .route = route,
                    .queries = queries,
                    .step = step_.view(),
                    .q = q_.view(),
                    .rope = rope,
                    .kv = {shape.type, shape.slots, keys_.view(), values_.view()},
                    .y = y_.view(),
                    .y_format = y_format,
                    .max_rows = max_rows};
    partials_ = test::poisoned(attention_partials_bytes(op));
    op.partials = partials_.view();
    test::expect_success(record(commands_, op));
  }

  // y of the rows of q at `position` and on; nothing beyond them is written.
  std::vector<float> operator()(uint32_t position, std::span<const float> q) {
    const Step step = {.position = position, .rows = uint32_t(q.size() / row_size_)};
    write(step_.view(), std::span(&step, 1));
    write(q_.view().part(0, q.size_bytes()), q);
    for (const gpu::Buffer* scratch : {&y_, &partials_}) {
      const std::vector<uint32_t> poison(scratch->bytes() / sizeof(uint32_t), test::poison_bits);
      write(scratch->view(), std::span(poison));
    }
    // More rows and positions than there are: the host knows only upper bounds.
    test::run(commands_, {.rows = max_rows, .positions = positions_});
    std::vector<float> result = test::download(y_.view());
    EXPECT_TRUE(test::untouched(std::span<const float>(result).subspan(q.size())));
    result.resize(q.size());
    return result;
  }

 private:
  template <class T>
  static void write(gpu::View view, std::span<const T> values) {
    if (!values.empty()) {
      test::expect_success(test::test_device().write(view, std::as_bytes(values)));
    }
  }

  uint32_t positions_;
  size_t row_size_;
  gpu::Buffer keys_, values_, step_, q_, y_, partials_;
  gpu::CommandList commands_;
};

constexpr AttentionRoute routes[] = {AttentionRoute::split, AttentionRoute::whole};

struct Case {
  Shape shape;
  std::vector<uint32_t> positions;
  uint32_t rows;
  const char* why;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.why; }

class AttentionCases : public ::testing::TestWithParam<Case> {};

TEST_P(AttentionCases, BothRoutesAgreeWithTheReference) {
  const auto& [shape, positions, rows, why] = GetParam();
  const auto q = test::random_floats(rows * shape.row_size(), 7);
  for (const uint32_t position : positions) {
    const uint32_t end = position + rows;
    Cache cache = make_cache(shape, shape.begin(position), end);
    std::vector<float> expected(q.size());
    attention_reference(shape.heads, shape.kv_heads, shape.head_dim, shape.window, position, rows,
                        q, {shape.type, shape.slots, cache.keys, cache.values}, expected);
    for (AttentionRoute route : routes) {
      // A score is a sum of up to 512 products, good to about 1e-6 of the sum of their magnitudes;
      // its error is the relative error of a weight.
      EXPECT_TRUE(test::close(OnGpu(route, shape, cache, end + 1)(position, q), expected, 5e-6))
          << "route " << int(route) << " at " << position;
    }
  }
}

constexpr KvType f16 = KvType::f16, f32 = KvType::f32;

INSTANTIATE_TEST_SUITE_P(
    All, AttentionCases,
    ::testing::Values(
        Case{{4, 1, 64, 0, 300, f32}, {0, 62, 200}, 5, "full, grouped heads, also at the start"},
        Case{{8, 1, 512, 0, 700, f16}, {600}, 3, "E2B full"},
        Case{{8, 1, 512, 0, 140, f32}, {130}, 2, "E2B full in f32"},
        Case{{8, 2, 256, 512, 640, f16}, {1000}, 4, "E4B sliding, a ring"},
        Case{{8, 1, 256, 512, 520, f32}, {0, 300, 511, 1000}, 2, "E2B sliding in f32"},
        Case{{2, 1, 32, 600, 640, f16}, {599, 1000}, 4, "a window that is split"},
        Case{{2, 1, 264, 40, 50, f16}, {20, 100}, 4, "heads that are split"},
        Case{{4, 1, 64, 128, 137, f16},
             {126, 127, 128, 255, 300, 123456},
             8,
             "contexts of W - 1, W, W + 1, 2W and far beyond the slots, none to spare"},
        Case{{4, 2, 16, 8, 16, f32}, {0, 5, 61, 1003}, 8, "tiny: a window shorter than a split"},
        Case{{4, 4, 32, 8, 24, f32}, {61}, 7, "one head to a KV head"},
        Case{{6, 2, 40, 70, 90, f16}, {250}, 3, "three heads to a KV head, no powers of two"},
        Case{{10, 2, 24, 0, 90, f32}, {80}, 2, "five heads to a KV head"},
        Case{{4, 1, 8, 1, 16, f32}, {0, 70}, 4, "a window of one key"},
        Case{{4, 1, 64, 65, 80, f32}, {127}, 2, "a window that touches the most splits"},
        Case{{4, 1, 64, 128, 160, f16}, {300}, 0, "a stopped step writes nothing"},
        Case{{4, 1, 64, 0, 160, f16}, {100}, 0, "a stopped step, full"}));

TEST(Attention, AWorkgroupMayTakeSeveralHeads) {
  constexpr uint32_t position = 100, rows = 3, end = position + rows;
  for (uint32_t window : {0u, 40u}) {
    const Shape shape = {8, 2, 64, window, 120, f16};
    Cache cache = make_cache(shape, shape.begin(position), end);
    const auto q = test::random_floats(rows * shape.row_size(), 7);
    std::vector<float> expected(q.size());
    attention_reference(shape.heads, shape.kv_heads, shape.head_dim, window, position, rows, q,
                        {shape.type, shape.slots, cache.keys, cache.values}, expected);
    for (uint32_t queries : {2u, 4u}) {
      OnGpu on_gpu(AttentionRoute::split, shape, cache, end, 0, {}, RowFormat::columns, queries);
      EXPECT_TRUE(test::close(on_gpu(position, q), expected, 5e-6))
          << queries << " heads, window " << window;
    }
  }
}

// All queries are zero, so y is the mean of the values that the row sees.
TEST(Attention, TheWindowIsInclusive) {
  const Shape shape = {1, 1, 64, 512, 520, KvType::f32};
  Cache cache = make_cache(shape, 0, 0);
  std::fill_n(cache.keys.begin(), 513 * 64, 0.0f);
  std::fill_n(cache.values.begin(), 513 * 64, 0.0f);
  std::fill_n(cache.values.begin(), 64, 512.0f);  // key 0
  const std::vector<float> q(64);
  for (AttentionRoute route : routes) {
    OnGpu on_gpu(route, shape, cache, 513);
    EXPECT_NEAR(on_gpu(511, q)[0], 1.0, 1e-6);
    EXPECT_EQ(on_gpu(512, q)[0], 0.0f);
  }
}

// Scores far apart: the largest takes all, and no exp overflows or becomes NaN.
TEST(Attention, WritesRowsOfInt8) {
  for (auto [heads, head_dim, window] : {std::array{4u, 64u, 41u}, {2u, 512u, 0u}, {3u, 32u, 0u}}) {
    constexpr uint32_t position = 70, rows = 3, context = 80;
    const Shape shape = {heads, 1, head_dim, window, context, KvType::f16};
    const Cache cache = make_cache(shape, 0, context);
    const auto q = test::random_floats(rows * shape.row_size(), 7);
    const std::vector<float> values =
        OnGpu(AttentionRoute::split, shape, cache, context)(position, q);
    const std::vector<float> y =
        OnGpu(AttentionRoute::split, shape, cache, context, 0, {}, RowFormat::int8)(position, q);
    std::vector<uint32_t> words(y.size());
    std::transform(y.begin(), y.end(), words.begin(), std::bit_cast<uint32_t, float>);
    EXPECT_TRUE(test::is_int8(words, heads * head_dim, values)) << head_dim;
  }
}

TEST(Attention, LargeScoresStayFinite) {
  const Shape shape = {1, 1, 64, 0, 200, KvType::f32};
  Cache cache = make_cache(shape, 0, 200);
  for (uint32_t position = 0; position < 200; ++position) {
    std::fill_n(&cache.keys[position * 64], 64, position == 150 ? 40.0f : -40.0f);
  }
  const std::vector<float> q(64, 40.0f);  // scores of 102400 and -102400
  const std::vector<float> expected(&cache.values[150 * 64], &cache.values[151 * 64]);
  for (AttentionRoute route : routes) {
    EXPECT_TRUE(test::close(OnGpu(route, shape, cache, 200)(199, q), expected, 1e-6));
  }
}

// For every alignment of the position to splits and window, a row of a 3- or 7-row step has the
// bits of the same row alone.
TEST(Attention, ARowHasTheSameBitsWhateverRowsAreBesideIt) {
  constexpr uint32_t first_position = 62, positions = first_position + 64 + 6;
  for (uint32_t window : {0u, 40u}) {
    for (AttentionRoute route : routes) {
      const Shape shape = {4, 1, 16, window, positions, KvType::f16};
      OnGpu on_gpu(route, shape, make_cache(shape, 0, positions), positions);
      const auto q = test::random_floats((positions - first_position) * shape.row_size(), 5);
      const auto rows_of = [&](std::span<const float> values, uint32_t first, uint32_t rows) {
        return values.subspan((first - first_position) * shape.row_size(), rows * shape.row_size());
      };
      std::vector<float> alone;
      for (uint32_t position = first_position; position < positions; ++position) {
        const std::vector<float> y = on_gpu(position, rows_of(q, position, 1));
        alone.insert(alone.end(), y.begin(), y.end());
      }
      for (uint32_t rows : {3u, 7u}) {
        for (uint32_t first = first_position; first + rows <= positions; ++first) {
          ASSERT_TRUE(
              test::same_bits(on_gpu(first, rows_of(q, first, rows)), rows_of(alone, first, rows)))
              << rows << " rows at " << first << ", window " << window << ", route " << int(route);
        }
      }
    }
  }
}

// The assistant's queries: the row's own position has no KV (make_cache leaves NaN there), and a
// window of W + 1 keys ends at the position before it.
TEST(Attention, ALaggingRowSeesWhatTheRowBeforeItDoes) {
  for (uint32_t window : {0u, 41u, 129u, 513u}) {
    const Shape shape = {4, 1, 32, window, window == 0 ? 600 : window + 8, KvType::f16};
    for (AttentionRoute route : routes) {
      for (uint32_t position : {1u, 2u, 40u, 41u, 42u, 64u, 65u, 129u, 130u, 131u, 192u, 320u, 512u,
                                513u, 514u, 579u}) {
        const Cache cache = make_cache(shape, shape.begin(position - 1), position);
        const auto q = test::random_floats(shape.row_size(), position);
        const auto lagging = OnGpu(route, shape, cache, 600, 1)(position, q);
        EXPECT_TRUE(test::same_bits(lagging, OnGpu(route, shape, cache, 600)(position - 1, q)))
            << "window " << window << " at " << position << ", route " << int(route);
        std::vector<float> expected(q.size());
        Cache copy = cache;
        attention_reference(shape.heads, shape.kv_heads, shape.head_dim, window, position - 1, 1, q,
                            {shape.type, shape.slots, copy.keys, copy.values}, expected);
        EXPECT_TRUE(test::close(lagging, expected, 5e-6));
      }
    }
  }
}

// With zero queries y is the mean of the values seen: of distances 1 .. W + 1.
TEST(Attention, ALaggingWindowHoldsDistancesOneToItsWidth) {
  constexpr uint32_t window = 8;  // the assistant's W
  const Shape shape = {1, 1, 8, window + 1, 64, KvType::f32};
  for (AttentionRoute route : routes) {
    for (uint32_t distance = 0; distance <= window + 2; ++distance) {
      Cache cache = {std::vector<float>(64 * 8), std::vector<float>(64 * 8)};
      std::fill_n(&cache.values[(30 - distance) * 8], 8, float(window + 1));
      const float seen = distance >= 1 && distance <= window + 1 ? 1.0f : 0.0f;
      const std::vector<float> q(8);
      EXPECT_NEAR(OnGpu(route, shape, cache, 64, 1)(30, q)[0], seen, 1e-6) << distance;
    }
  }
}

TEST(Attention, ASoftwareAdapterTakesAsManyHeadsAWorkgroupAsShareAKvHead) {
  gpu::AdapterInfo software;
  software.software = true;
  for (auto [heads, kv_heads, groups] :
       {std::tuple{8u, 1u, 2u}, {4u, 2u, 2u}, {6u, 1u, 2u}, {5u, 1u, 5u}}) {
    const Attention op = {
        .heads = heads, .kv_heads = kv_heads, .head_dim = 64, .positions = 64, .max_rows = 1};
    EXPECT_EQ(attention_routes(op, software)[0].grid.groups, groups) << heads;
    EXPECT_EQ(attention_routes(op, {})[0].grid.groups, heads);
  }
}

TEST(Attention, SlidingLayersNeedTheSameWorkgroupsAtEveryPosition) {
  Attention op = {.heads = 8, .kv_heads = 1, .head_dim = 256, .window = 512, .positions = 8960};
  EXPECT_EQ(attention_routes(op, {})[0].grid.groups,
            8u * 17);  // 512 keys touch up to 17 tiles of 32
  EXPECT_EQ(attention_routes(op, {})[0].grid.positions_per_group, 0u);
  EXPECT_EQ(attention_routes(op, {})[1].grid.groups, 8u * 4);  // four parts of a head
  op.window = 0;
  EXPECT_EQ(attention_routes(op, {})[0].grid.groups, 8u);
  op.queries = 2;
  op.tile = 64;
  EXPECT_EQ(attention_routes(op, {})[0].grid.groups, 4u);
  EXPECT_EQ(attention_routes(op, {})[0].grid.positions_per_group, 64u);
  EXPECT_EQ(attention_routes(op, {})[1].grid.positions_per_group, 0u);
  op.route = AttentionRoute::whole;
  EXPECT_EQ(attention_routes(op, {})[0].grid.groups, 1u);  // eight heads of four rows together
  EXPECT_EQ(attention_routes(op, {})[0].grid.rows_per_group, 4u);
  EXPECT_EQ(attention_routes(op, {}).size(), 1u);
}

// What WebGPU guarantees everywhere.
TEST(Attention, TheLargestHeadsFitTheBaseLimits) {
  gpu::Limits limits = test::test_device().info().limits;
  limits.max_workgroup_bytes = 16384;
  limits.max_workgroup_invocations = 256;
  limits.max_storage_buffers = 8;
  const auto device = test::open_device({.limits = limits});
  for (const auto& [kind, head_dim, window] : {std::tuple{AttentionRoute::split, 512u, 0u},
                                               {AttentionRoute::split, 256u, 512u},
                                               {AttentionRoute::whole, 512u, 0u}}) {
    const Attention op = {.heads = 8,
                          .kv_heads = 1,
                          .head_dim = head_dim,
                          .window = window,
                          .positions = 8960,
                          .route = kind,
                          .kv = {.type = KvType::f16, .slots = 8960}};
    for (const Route& route : attention_routes(op, {})) {
      EXPECT_TRUE(device->kernel(route.kernel, route.constants)) << describe(route);
    }
  }
  const auto compiled = device->finish_kernels();
  EXPECT_TRUE(compiled) << compiled.error().message;
}

// As qkv_rope and attention one after the other.
TEST(Attention, TurnsQueriesThatAreAsTheirProductLeavesThem) {
  struct Layer {
    uint32_t heads, head_dim, pairs, window, lag;
  };
  for (const auto& [heads, head_dim, pairs, window, lag] : {Layer{4, 64, 32, 0, 0},
                                                            {8, 512, 64, 0, 0},
                                                            {2, 24, 5, 0, 0},
                                                            {4, 64, 32, 41, 0},
                                                            {4, 128, 32, 0, 1},
                                                            {4, 256, 128, 513, 1},
                                                            {4, 64, 32, 41, 1}}) {
    constexpr uint32_t position = 70, rows = 3, context = 80;
    const Shape shape = {heads, 1, head_dim, window, context, KvType::f16};
    Cache cache = make_cache(shape, 0, context);
    const auto raw = test::random_floats(rows * shape.row_size(), 7, 3);
    const auto norm = test::random_floats(head_dim, 8, 0.3f);
    const spec::Rope rope{.theta = 10000, .rotated_pairs = pairs};
    std::vector<float> q(raw.size()), expected(raw.size());
    qkv_rope_reference(
        {.heads = heads, .head_dim = head_dim, .owns_kv = false, .epsilon = 1e-6, .rope = rope},
        position, rows, raw, norm, {}, q, {});
    attention_reference(heads, 1, head_dim, window, position - lag, rows, q,
                        {shape.type, shape.slots, cache.keys, cache.values}, expected);
    const gpu::Buffer q_norm = test::upload(norm);
    const gpu::Buffer angles = test::upload(rope_angles(rope, head_dim, context));
    OnGpu on_gpu(AttentionRoute::split, shape, cache, context, lag,
                 QueryRope{pairs, 1e-6f, q_norm.view(), angles.view()});
    EXPECT_TRUE(test::close(on_gpu(position, raw), expected, 5e-6))
        << head_dim << ", window " << window << ", lag " << lag;
  }
}

TEST(Attention, RefusesShapesItsKernelsAreNotBuiltFor) {
  gpu::Device& device = test::test_device();
  const gpu::Buffer step = test::upload(Step{.rows = 1});
  const gpu::Buffer data = test::poisoned(65536), y = test::poisoned(4096);
  const gpu::Buffer partials = test::poisoned(4 * 20 * sizeof(float));
  const Attention good = {.heads = 4,
                          .kv_heads = 2,
                          .head_dim = 16,
                          .positions = 64,
                          .step = step.view(),
                          .q = data.view(),
                          .rope = {},
                          .kv = {KvType::f16, 64, data.view(), data.view()},
                          .partials = partials.view(),
                          .y = y.view(),
                          .max_rows = 1};
  gpu::CommandList commands(device);
  EXPECT_TRUE(record(commands, good));
  Attention bad = good;
  bad.head_dim = 20;
  EXPECT_FALSE(record(commands, bad));
  bad = good, bad.head_dim = 520;
  EXPECT_FALSE(record(commands, bad));
  bad = good, bad.heads = 5;
  EXPECT_FALSE(record(commands, bad));
  bad = good, bad.kv.slots = 2048;  // the planes would need 128 KiB
  EXPECT_FALSE(record(commands, bad));
  bad = good, bad.positions = 65;  // a second split, which partials has no room for
  EXPECT_FALSE(record(commands, bad));
  bad = good, bad.y = {};
  EXPECT_FALSE(record(commands, bad));
  bad = good, bad.tile = 16;
  EXPECT_FALSE(record(commands, bad));
  bad = good, bad.queries = 8;  // more than a workgroup takes
  EXPECT_FALSE(record(commands, bad));
  bad = good, bad.queries = 4;  // of two KV heads
  EXPECT_FALSE(record(commands, bad));
  const QueryRope rope{8, 1e-6f, data.view(), data.view()};
  bad = good, bad.rope = rope;
  EXPECT_TRUE(record(commands, bad));
  bad.rope->rotated_pairs = 9;
  EXPECT_FALSE(record(commands, bad));
  bad.rope = rope, bad.rope->q_norm.bytes = 60;
  EXPECT_FALSE(record(commands, bad));
  bad.rope = rope, bad.rope->angles.bytes = 60;
  EXPECT_FALSE(record(commands, bad));
  bad.rope = rope, bad.route = AttentionRoute::whole;
  EXPECT_FALSE(record(commands, bad));
}

}  // namespace
}  // namespace tandem::ops
