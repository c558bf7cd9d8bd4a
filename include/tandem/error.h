// What every call that can fail returns: a value, or an Error with a code to act on and a message
// to read.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#pragma GCC visibility push(default)
namespace tandem {

enum class ErrorCode {
  invalid_argument,      // an option or argument is out of its range
  io,                    // the operating system refused a read or a write
  not_found,             // a file, tensor, adapter or name does not exist
  already_exists,        // an output is there already and is never replaced
  unsafe_path,           // a path leaves its folder, or is a symbolic link
  malformed_json,        // text is not JSON, or has a duplicate key
  unknown_key,           // a JSON object has a key that is not part of its schema
  missing_key,           // a JSON object lacks a key that its schema requires
  wrong_type,            // a JSON value has another type than its schema says
  bad_value,             // a field has a value that is out of range or contradicts another
  unsupported,           // a valid input asks for something that is not built
  malformed_checkpoint,  // a checkpoint's files are damaged or disagree with its config
  malformed_artifact,    // an artifact's files are damaged or disagree with its manifest
  hash_mismatch,         // bytes do not have the sha256 that was promised
  unverified,            // an artifact's sources match no pin, and only verified ones are wanted
  malformed_text,        // a tokenizer, template or token id is not usable
  limit_exceeded,        // a plan needs more than the adapter or an option allows
  context_exceeded,      // a prompt does not fit the context
  no_adapter,            // no WebGPU adapter matches the request
  gpu_validation,        // WebGPU refused a kernel, a binding or a command
  out_of_memory,         // the GPU could not allocate a buffer
  device_lost,           // the GPU device is gone; open the engine again
  not_finite,            // logits are no numbers: damaged weights, or a driver at fault
  cancelled,             // the caller asked for an end; nothing is left of the work
  internal,              // a defect in Tandem itself
};

// The code's own name, for instance "hash_mismatch".
std::string_view name(ErrorCode code);

// One line of meaning for each code, as in the enum's comments.
std::string_view meaning(ErrorCode code);

struct Error {
  ErrorCode code;
  // Names the file, tensor or option, what was expected, what was found, and what to do next.
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

}  // namespace tandem
#pragma GCC visibility pop
