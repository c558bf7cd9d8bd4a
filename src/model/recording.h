// Records the target's methods from operators: which kernels run on which buffers, in which order.
// The formulas are those of Hugging Face transformers' gemma4 and gemma3 models.
#pragma once

#include <functional>
#include <vector>

#include "gpu/device.h"
#include "model/plan.h"
#include "model/weights.h"
#include "ops/attention/attention.h"
#include "ops/linear/linear.h"

namespace tandem::model {

// The row buffers of one method: how many rows it runs at once, and by which routes.
struct RowSet {
  std::string_view name;  // "row", "chunk" or "score": the prefix of its buffers in the plan
  uint32_t max_rows = 1;
  ops::RowRoute linear = ops::RowRoute::one;
  ops::AttentionRoute attention = ops::AttentionRoute::split;
  std::string_view step;  // "step" or "chunk_step"
};

// Cuts a product of few rows as suits the device, and lets one of a single row take the route `few`
// where the device gives a row other bits in a product of several.
using Suit = std::function<Result<void>(ops::Linear&, TakenStep)>;

class Recording {
 public:
  Recording(gpu::Device& device, const spec::Config& config, const Plan& plan,
            const DeviceWeights& weights, const Buffers& scratch, const Buffers& sequence,
            Suit suit, bool leaves_steps);

  // Token ids to h, normed and the per-layer inputs of the first `layers` layers.
  Result<gpu::CommandList> inputs(const RowSet& rows, uint32_t layers);
  // h and normed through layers [begin, end); leaves normed ready for layer `end`, or for the head.
  Result<gpu::CommandList> layers(const RowSet& rows, uint32_t begin, uint32_t end);
  // normed to logits.
  Result<gpu::CommandList> head(const RowSet& rows);
  // h and normed of the last row of `from` to the single row of `to`.
  Result<gpu::CommandList> last_row(const RowSet& from, const RowSet& to);
  // The logits of each row to a token, the largest or a sampled one; the drafts among the rows
  // accepted, and the step moved on. Where there is an assistant, its drafts get what they begin
  // with.
  Result<gpu::CommandList> next_token(const RowSet& rows, bool sampled);

  gpu::View view(const RowSet& rows, std::string_view buffer) const;
  gpu::View step(const RowSet& rows) const;
  // The residual stream, where it lies at this point: lists are recorded in the order in which they
  // run.
  gpu::View h(const RowSet& rows) const;
  // How rows lie that `weights` multiply: what norms and the MLP's inside are.
  ops::RowFormat row_format(const RowSet& rows, const ops::Matrix& weights) const;

 private:
  // A product of rows x [weights.columns], with an optional factor of the epilogue.
  struct Product {
    const ops::Matrix& weights;
    ops::Epilogue epilogue = ops::Epilogue::none;
    gpu::View x = {};
    ops::RowFormat x_format = ops::RowFormat::columns;
    gpu::View times = {};
    gpu::View y = {};
    ops::RowFormat y_format = ops::RowFormat::columns;
  };
  // h = (h + norm(branch) * weight) * scalar; normed = norm(h) * next, as `matrix` reads it, if
  // there is a next.
  struct Step {
    gpu::View weight = {};
    gpu::View scalar = {};
    gpu::View next = {};
    const ops::Matrix* matrix = nullptr;

    TakenStep taken() const { return scalar ? TakenStep::scaled : TakenStep::plain; }
  };

  // What the per-layer inputs are made of: a part of the table, and h projected.
  Result<void> per_layer_context(gpu::CommandList& commands, const RowSet& rows, uint32_t layers);
  Result<void> per_layer_inputs(gpu::CommandList& commands, const RowSet& rows, uint32_t layers);
  Result<void> attention(gpu::CommandList& commands, const RowSet& rows, uint32_t layer);
  // `next`: the product after the layer, if it is in the same list.
  Result<void> mlp(gpu::CommandList& commands, const RowSet& rows, uint32_t layer,
                   const std::optional<Product>& next);
  bool gates_before_adding(const RowSet& rows, uint32_t layer) const;
  Result<void> per_layer(gpu::CommandList& commands, const RowSet& rows, uint32_t layer,
                         const std::optional<Product>& next);
  Product qkv(const RowSet& rows, uint32_t layer) const;
  Product gate_up(const RowSet& rows, uint32_t layer) const;

  Result<void> argmax(gpu::CommandList& commands, const RowSet& rows);
  Result<void> sample(gpu::CommandList& commands, const RowSet& rows);

  // As the operator has it, and as the device does it after such a residual step.
  Result<ops::Linear> multiplication(const RowSet& rows, const Product& product, TakenStep step);
  // With the residual step that it takes, if that is left to it. Returns the format of y: the
  // product's, or `columns` where nothing writes that one of such rows.
  Result<ops::RowFormat> linear(gpu::CommandList& commands, const RowSet& rows,
                                const Product& product);
  // Rows of f32, column by column, to int8.
  Result<void> quantize(gpu::CommandList& commands, const RowSet& rows, uint32_t columns,
                        gpu::View x);
  // A product that is a branch, and the step that returns it to h, which is left to the product
  // `next` where that can do it.
  Result<void> branch(gpu::CommandList& commands, const RowSet& rows, Product product,
                      const Step& step, const std::optional<Product>& next);
  // The step at the end of a layer.
  Step last_step(uint32_t layer, std::string_view norm) const;
  // Whether rows that `weights` multiply are int8.
  bool is_int8(const ops::Matrix& weights) const;
  ops::KvCache kv(uint32_t layer) const;
  const ops::Matrix& weights(uint32_t layer, std::string_view tensor) const;
  gpu::View vector(uint32_t layer, std::string_view tensor) const;
  // What a layer's output is multiplied by, if anything.
  gpu::View scalar(uint32_t layer) const;
  // The norm that reads h after layer `layer`, the next layer's first or the final one, and what
  // multiplies it.
  gpu::View next_norm(uint32_t layer) const;
  const ops::Matrix& next_matrix(uint32_t layer) const;

  gpu::Device& device_;
  const spec::Config& config_;
  const Plan& plan_;
  const DeviceWeights& weights_;
  const Buffers& scratch_;
  const Buffers& sequence_;
  Suit suit_;
  bool leaves_steps_;
  // Of few rows, h moves from one buffer to the other where a kernel that all of its workgroups
  // read it in writes the next one.
  std::string_view h_ = "h", next_h_ = "other_h";
  std::optional<Step> left_;  // the step that is left to the next product
};

}  // namespace tandem::model
