// Which type every tensor of an artifact gets.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "exporter/bind.h"

namespace tandem::exporter {

// What a caller asks for. Without it, a tensor with a type to keep (CheckpointTensor::kept) keeps
// it, but f16 and f32 become q4_0 where all weights lie on that grid. Else a class without a type:
// q4_0 for matrices, but f16 for an assistant's that do not lie exactly on that grid; for tables
// q4_0 where all weights lie on it, else q8_0. Vectors are always f32. Tensors whose columns a
// class's type cannot hold are f16.
struct RecipeOptions {
  std::optional<spec::WeightType> matrix;
  std::optional<spec::WeightType> table;
  std::map<std::string, spec::WeightType>
      tensors;  // by the artifact's name; refused where it cannot hold them
};

// Refuses options that name no tensor of the model or ask for what cannot be.
Result<void> check_options(const RecipeOptions& options, const std::vector<BoundTensor>& tensors);

// The recipe for checked options. `on_grid` tells whether a tensor's weights lie on the Q4_0 grid;
// it is asked only where that decides.
Result<artifact::Recipe> make_recipe(
    const RecipeOptions& options, const std::vector<BoundTensor>& tensors,
    const std::function<Result<bool>(const BoundTensor&)>& on_grid);

// A recipe with more tensors, whose types another recipe says.
artifact::Recipe extend(artifact::Recipe recipe, const artifact::Recipe& more,
                        const std::vector<BoundTensor>& tensors);

}  // namespace tandem::exporter
