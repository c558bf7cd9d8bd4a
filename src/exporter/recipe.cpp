#include "exporter/recipe.h"

#include <algorithm>

#include "base/error.h"

namespace tandem::exporter {
namespace {

using spec::TensorClass;
using spec::WeightType;

bool holds(WeightType type, const spec::Tensor& tensor) {
  return !spec::planes(type, tensor.columns).empty() && spec::may_be(tensor.tensor_class, type);
}

// The type that a tensor's sources are kept in; f16 if that of one differs from another's.
std::optional<WeightType> kept_type(const BoundTensor& tensor) {
  std::optional<WeightType> kept;
  for (const CheckpointTensor& source : tensor.sources) {
    if (!source.kept) return std::nullopt;
    kept = kept.value_or(*source.kept) == *source.kept ? *source.kept : WeightType::f16;
  }
  return kept;
}

// So that the fewest tensors are exceptions.
WeightType most_common(TensorClass tensor_class, const std::vector<BoundTensor>& tensors,
                       const std::vector<WeightType>& types) {
  std::map<WeightType, size_t> counts;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].row.tensor_class == tensor_class) ++counts[types[i]];
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? WeightType::q4_0 : most->first;
}

}  // namespace

Result<void> check_options(const RecipeOptions& options, const std::vector<BoundTensor>& tensors) {
  for (const auto& [tensor_name, type] : options.tensors) {
    const auto found =
        std::find_if(tensors.begin(), tensors.end(),
                     [&name = tensor_name](const auto& tensor) { return tensor.row.name == name; });
    if (found == tensors.end()) {
      return fail(ErrorCode::not_found,
                  "recipe: the model has no tensor {}; its names are like embedding, layers.0.qkv",
                  tensor_name);
    }
    if (!spec::may_be(found->row.tensor_class, type)) {
      return fail(ErrorCode::invalid_argument,
                  "recipe: {} is a tensor of class {}, which cannot be {}", tensor_name,
                  name(found->row.tensor_class), name(type));
    }
    if (!holds(type, found->row)) {
      return fail(ErrorCode::invalid_argument,
                  "recipe: {} cannot hold tensor {}, whose {} columns are no multiple of {}",
                  name(type), tensor_name, found->row.columns, spec::block_columns);
    }
  }
  return {};
}

Result<artifact::Recipe> make_recipe(
    const RecipeOptions& options, const std::vector<BoundTensor>& tensors,
    const std::function<Result<bool>(const BoundTensor&)>& on_grid) {
  std::vector<WeightType> types;
  bool tables_on_grid = true;
  for (const BoundTensor& tensor : tensors) {
    const spec::Tensor& row = tensor.row;
    const bool is_table = row.tensor_class == TensorClass::table;
    const bool is_matrix = row.tensor_class == TensorClass::matrix;
    WeightType type = artifact::Recipe().of_class(row.tensor_class);
    if (const auto own = options.tensors.find(row.name); own != options.tensors.end()) {
      type = own->second;
    } else if (is_table || is_matrix) {
      const std::optional<WeightType> asked = is_matrix ? options.matrix : options.table;
      const std::optional<WeightType> kept = asked ? std::nullopt : kept_type(tensor);
      type = asked.value_or(WeightType::q4_0);
      if (kept == WeightType::q4_0 || kept == WeightType::q8_0) {
        type = *kept;
      } else if (!holds(type, row)) {
        type = kept.value_or(WeightType::f16);
      } else if (!asked && (kept || is_table || spec::is_assistants(row.name))) {
        TRY_ASSIGN(const bool exact, on_grid(tensor));
        if (!exact) type = kept.value_or(is_table ? WeightType::q8_0 : WeightType::f16);
        tables_on_grid = tables_on_grid && (exact || is_matrix);
      }
    }
    types.push_back(type);
  }
  artifact::Recipe recipe;
  recipe.matrix = options.matrix.value_or(WeightType::q4_0);
  recipe.table = options.table.value_or(tables_on_grid ? WeightType::q4_0 : WeightType::q8_0);
  if (!tensors.empty() && kept_type(tensors.front())) {
    if (!options.matrix) recipe.matrix = most_common(TensorClass::matrix, tensors, types);
    if (!options.table) recipe.table = most_common(TensorClass::table, tensors, types);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const spec::Tensor& row = tensors[i].row;
    if (types[i] != recipe.of_class(row.tensor_class)) recipe.overrides[row.name] = types[i];
  }
  return recipe;
}

artifact::Recipe extend(artifact::Recipe recipe, const artifact::Recipe& more,
                        const std::vector<BoundTensor>& tensors) {
  for (const BoundTensor& tensor : tensors) {
    const WeightType type = more.of(tensor.row);
    if (type != recipe.of_class(tensor.row.tensor_class)) recipe.overrides[tensor.row.name] = type;
  }
  return recipe;
}

}  // namespace tandem::exporter
