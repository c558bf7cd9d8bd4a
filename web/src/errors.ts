// Errors of the whole package: the engine's codes (include/tandem/error.h), which the loader uses too.
import type { ErrorCode } from '../low_level.js';

export type { ErrorCode };

/** One line of meaning for each code, as in the engine. */
export const errorMeanings: Readonly<Record<ErrorCode, string>> = {
  invalid_argument: 'an option or argument is out of its range',
  io: 'a read or a download failed',
  not_found: 'a file, tensor, adapter or name does not exist',
  already_exists: 'an output is there already and is never replaced',
  unsafe_path: 'a path leaves its folder, or is a symbolic link',
  malformed_json: 'text is not JSON, or has a duplicate key',
  unknown_key: 'a JSON object has a key that is not part of its schema',
  missing_key: 'a JSON object lacks a key that its schema requires',
  wrong_type: 'a JSON value has another type than its schema says',
  bad_value: 'a field has a value that is out of range or contradicts another',
  unsupported: 'a valid input asks for something that is not built',
  malformed_checkpoint: "a checkpoint's files are damaged or disagree with its config",
  malformed_artifact: "an artifact's files are damaged or disagree with its manifest",
  hash_mismatch: 'bytes do not have the sha256 that was promised',
  unverified: "an artifact's sources match no pin, and only verified ones are wanted",
  malformed_text: 'a tokenizer, template or token id is not usable',
  limit_exceeded: 'a plan needs more than the adapter or an option allows',
  context_exceeded: 'a prompt does not fit the context',
  no_adapter: 'no WebGPU adapter matches the request',
  gpu_validation: 'WebGPU refused a kernel, a binding or a command',
  out_of_memory: 'the GPU could not allocate a buffer',
  device_lost: 'the GPU device is gone; load the model again',
  not_finite: 'logits are no numbers: damaged weights, or a driver at fault',
  cancelled: 'the caller asked for an end; nothing is left of the work',
  internal: 'a defect in Tandem itself',
};

/** The one error that Tandem throws. The message names what was expected and what was found. */
export class TandemError extends Error {
  override readonly name = 'TandemError';

  constructor(
    readonly code: ErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** An error as plain data, which crosses to and from a worker. */
export type ErrorData = { code: ErrorCode | 'aborted'; message: string };

// An engine module has an error class of its own, with the same name and codes.
export function toErrorData(error: unknown): ErrorData {
  const { name, code, message } = error as Partial<TandemError>;
  if (isAbort(error)) return { code: 'aborted', message: error.message };
  if (name === 'TandemError' && code && Object.hasOwn(errorMeanings, code)) {
    return { code, message: message ?? '' };
  }
  return { code: 'internal', message: message ?? String(error) };
}

export function fromErrorData({ code, message }: ErrorData): Error {
  return code === 'aborted' ? new DOMException(message, 'AbortError') : new TandemError(code, message);
}

/** Whether an AbortSignal ended the work. */
export function isAbort(error: unknown): error is Error {
  return error instanceof DOMException && error.name === 'AbortError';
}
