#include "exporter/bind.h"

#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "exporter/ggml_blocks.h"

namespace tandem::exporter {
namespace {

// Tensors by their name without the prefix that depends on the kind of checkpoint.
using NamedTensor = std::map<std::string, CheckpointTensor>::value_type;

Result<std::map<std::string, const NamedTensor*>> by_short_name(const Checkpoint& checkpoint) {
  std::map<std::string, const NamedTensor*> result;
  for (const NamedTensor& tensor : checkpoint.tensors()) {
    const auto [other, is_new] = result.emplace(spec::without_prefix(tensor.first), &tensor);
    if (!is_new) {
      return fail(ErrorCode::malformed_checkpoint,
                  "tensors {} and {} are the same one; remove one of them", other->second->first,
                  tensor.first);
    }
  }
  return result;
}

Result<void> check_source(const CheckpointTensor& tensor, const spec::Source& source,
                          spec::TensorClass tensor_class) {
  const bool is_matrix =
      tensor_class == spec::TensorClass::matrix || tensor_class == spec::TensorClass::table;
  std::vector<uint64_t> shape = {source.rows, source.columns};
  if (!is_matrix) shape = {source.columns};
  const bool is_scalar = !is_matrix && source.columns == 1 && tensor.shape.empty();
  if (tensor.shape != shape && !is_scalar) {
    return fail(ErrorCode::malformed_checkpoint,
                "tensor {}: expected the shape [{}] by the config, found [{}]", tensor.name,
                fmt::join(shape, ", "), fmt::join(tensor.shape, ", "));
  }
  const bool ids = tensor_class == spec::TensorClass::ids;
  const bool readable = (is_matrix && is_quantized(tensor.dtype)) ||
                        (value_bytes(tensor.dtype) != 0 && holds_ids(tensor.dtype) == ids);
  if (!readable) {
    return fail(
        ErrorCode::unsupported, "tensor {}: expected {}{}, found {}", tensor.name,
        ids ? "I64 or I32" : "BF16, F16 or F32",
        is_matrix ? " (or a GGUF file's Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K)" : "",
        tensor.dtype);
  }
  return {};
}

// `config` says which tensors beyond the registry may be left out.
Result<Binding> bind_registry(const Checkpoint& checkpoint,
                              const std::vector<spec::Tensor>& registry,
                              const spec::Config& config) {
  TRY_ASSIGN(const auto found, by_short_name(checkpoint));
  Binding binding;
  std::set<std::string> wanted;
  std::vector<std::string> missing;
  for (const spec::Tensor& row : registry) {
    for (const spec::Source& source : row.sources) {
      wanted.insert(source.name);
      if (!found.contains(source.name)) missing.push_back(source.name);
    }
  }
  std::vector<std::string> extra;
  for (const auto& [short_name, tensor] : found) {
    if (wanted.contains(short_name)) continue;
    const std::string_view rule = spec::ignored_by_rule(config, tensor->first);
    if (rule.empty()) extra.push_back(tensor->second.name);
    if (!rule.empty()) binding.ignored.push_back({tensor->second.name, std::string(rule)});
  }
  if (!missing.empty() || !extra.empty()) {
    return fail(ErrorCode::malformed_checkpoint,
                "the tensors are not those of the config: missing: {}; not part of the model: {}",
                first_few(missing), first_few(extra));
  }
  for (const spec::Tensor& row : registry) {
    BoundTensor tensor{row, {}, &checkpoint};
    if (checkpoint.sums_norms()) tensor.row.offset = 0;
    for (const spec::Source& source : row.sources) {
      tensor.sources.push_back(found.at(source.name)->second);
      TRY(check_source(tensor.sources.back(), source, row.tensor_class));
    }
    binding.tensors.push_back(std::move(tensor));
  }
  return binding;
}

}  // namespace

uint64_t BoundTensor::source_bytes() const {
  uint64_t bytes = 0;
  for (const CheckpointTensor& source : sources) bytes += source.bytes;
  return bytes;
}

Result<Binding> bind(const Checkpoint& checkpoint, const spec::Config& config) {
  return bind_registry(checkpoint, spec::tensors(config), config);
}

Result<Binding> bind(const Checkpoint& checkpoint, const spec::AssistantConfig& config) {
  return bind_registry(checkpoint, spec::tensors(config), config.text);
}

}  // namespace tandem::exporter
