// What people are shown of a route: the kernel and of its constants those that tell its shape.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ops/linear/linear.h"
#include "ops/op.h"
#include "ops/slice/slice.h"

namespace tandem::ops {
namespace {

class Constants {
 public:
  explicit Constants(const Route& route) : route_(route) {}

  uint64_t operator[](std::string_view name) const {
    const auto found = std::find_if(route_.constants.begin(), route_.constants.end(),
                                    [&](const gpu::Constant& c) { return c.name == name; });
    return found == route_.constants.end() ? 0 : static_cast<uint64_t>(found->value);
  }
  std::string_view type() const {
    return spec::name(static_cast<spec::WeightType>((*this)["TYPE"]));
  }
  std::string_view kv() const { return (*this)["KV_F16"] != 0 ? "f16" : "f32"; }
  std::string window() const {
    const uint64_t window = (*this)["WINDOW"];
    return window == 0 ? "full" : fmt::format("window={}", window);
  }
  // "q4_0 6144x1536 gelu_pair"
  std::string product() const {
    const auto epilogue = static_cast<Epilogue>((*this)["EPILOGUE"]);
    return fmt::format("{} {}x{}{}{}", type(), (*this)["ROWS"], (*this)["COLUMNS"],
                       epilogue == Epilogue::none ? "" : " ",
                       epilogue == Epilogue::none ? "" : name(epilogue));
  }
  // How few rows are multiplied: "units lanes=16"
  std::string lanes() const {
    return fmt::format("{}lanes={}", (*this)["WORDS"] == 4 ? "units " : "", (*this)["LANES"]);
  }

 private:
  const Route& route_;
};

struct Shape {
  std::string_view kernel;
  std::string (*text)(const Constants&);
};

constexpr Shape shapes[] = {
    {"add_norm",
     [](const Constants& c) {
       return fmt::format("{}{}{}", c["COLUMNS"], c["SCALED"] != 0 ? " scaled" : "",
                          c["NEXT"] != 0 ? " next" : "");
     }},
    {"accept", [](const Constants& c) { return fmt::format("{} drafts", c["DRAFTS"]); }},
    {"argmax", [](const Constants& c) { return fmt::format("{}", c["COLUMNS"]); }},
    {"argmax_combine", [](const Constants& c) { return fmt::format("{}", c["TILES"]); }},
    {"attention",
     [](const Constants& c) {
       return fmt::format("{}/{}x{} {} {} whole", c["HEADS"], c["KV_HEADS"], c["HEAD_DIM"], c.kv(),
                          c.window());
     }},
    {"attention_split",
     [](const Constants& c) {
       return fmt::format("{}/{}x{} {} {}{}", c["HEADS"], c["KV_HEADS"], c["HEAD_DIM"], c.kv(),
                          c.window(), c["ROPE"] != 0 ? " rope" : "");
     }},
    {"attention_combine",
     [](const Constants& c) {
       return fmt::format("{}x{} {}", c["HEADS"], c["HEAD_DIM"], c.window());
     }},
    {"embedding",
     [](const Constants& c) { return fmt::format("{} {}x{}", c.type(), c["ROWS"], c["COLUMNS"]); }},
#ifndef TANDEM_PLAIN  // the browser's plain module has no operators of drafts
    {"draft_input",
     [](const Constants& c) { return fmt::format("{} {}x{}", c.type(), c["ROWS"], c["COLUMNS"]); }},
    {"linear_top_k",
     [](const Constants& c) {
       return fmt::format("{} {}x{} k={} lanes={}", c.type(), c["ROWS"], c["COLUMNS"], c["K"],
                          c["LANES"]);
     }},
    {"top_k", [](const Constants& c) { return fmt::format("{} k={}", c["COLUMNS"], c["K"]); }},
    {"draft", [](const Constants& c) { return fmt::format("{} of {}", c["INDEX"], c["SCORED"]); }},
    {"gathered_linear",
     [](const Constants& c) {
       return fmt::format("{} {} of {}x{}", c.type(), c["OUTPUTS"], c["ROWS"], c["COLUMNS"]);
     }},
    {"linear_add_norm",
     [](const Constants& c) {
       return fmt::format("{} {}x{}{}{} lanes={}", c.type(), c["HIDDEN"], c["COLUMNS"],
                          c["ADD"] != 0 ? " add" : "", c["SCALED"] != 0 ? " scaled" : "",
                          c["LANES"]);
     }},
    {"scatter",
     [](const Constants& c) { return fmt::format("{} of {}", c["COUNT"], c["COLUMNS"]); }},
    {"scatter_fill",
     [](const Constants& c) { return fmt::format("{} of {}", c["COUNT"], c["COLUMNS"]); }},
#endif
    {"linear_row",
     [](const Constants& c) { return fmt::format("{} m={} {}", c.product(), c["M"], c.lanes()); }},
    {"linear_int8",
     [](const Constants& c) {
       return fmt::format("{}{} m={} {}", c.product(), c["Y_INT8"] != 0 ? " to int8" : "", c["M"],
                          c.lanes());
     }},
    {"linear_norm",
     [](const Constants& c) {
       return fmt::format("{}{} {}", c.product(), c["SCALED"] != 0 ? " scaled" : "", c.lanes());
     }},
    {"linear_norm_int8",
     [](const Constants& c) {
       return fmt::format("{}{}{} {}", c.product(), c["SCALED"] != 0 ? " scaled" : "",
                          c["Y_INT8"] != 0 ? " to int8" : "", c.lanes());
     }},
    {"linear_tiled", [](const Constants& c) { return c.product(); }},
    {"linear_tiled_int8", [](const Constants& c) { return c.product(); }},
    {"per_layer_gate",
     [](const Constants& c) { return fmt::format("{} lanes={}", c.product(), c["LANES"]); }},
    {"per_layer_input",
     [](const Constants& c) { return fmt::format("{}x{}", c["LAYERS"], c["WIDTH"]); }},
    {"q_rope", [](const Constants& c) { return fmt::format("{}x{}", c["HEADS"], c["HEAD_DIM"]); }},
    {"qkv_rope",
     [](const Constants& c) {
       return fmt::format("{}/{}x{} {}", c["HEADS"], c["KV_HEADS"], c["HEAD_DIM"], c.kv());
     }},
    {"quantize", [](const Constants& c) { return fmt::format("{}", c["COLUMNS"]); }},
    {"rms_norm", [](const Constants& c) { return fmt::format("{}", c["COLUMNS"]); }},
    {"sample_adjust", [](const Constants& c) { return fmt::format("{}", c["COLUMNS"]); }},
    {"sample_pass",
     [](const Constants& c) { return fmt::format("{} pass={}", c["TILES"], c["PASS"]); }},
    {"slice",
     [](const Constants& c) {
       const bool all = static_cast<SliceRows>(c["ROWS"]) == SliceRows::all;
       return fmt::format("{}{}", c["COLUMNS"], all ? "" : " one_row");
     }},
};

}  // namespace

std::string label(const Route& route) {
  const auto* shape = std::find_if(std::begin(shapes), std::end(shapes),
                                   [&](const Shape& s) { return s.kernel == route.kernel; });
  if (shape == std::end(shapes)) return describe(route);
  const std::string text = shape->text(Constants(route));
  return text.empty() ? std::string(route.kernel) : fmt::format("{} {}", route.kernel, text);
}

}  // namespace tandem::ops
