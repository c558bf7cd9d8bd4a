// Tandem in the browser: Gemma 4 on WebGPU, plain and with its multi-token-prediction assistant.
export { Tandem, type Model, type Session } from './tandem.js';
export { type Generation } from './generation.js';
export { TandemError, errorMeanings, type ErrorCode } from './errors.js';
export { clearCache } from './cache.js';
export type {
  Census,
  EngineInfo,
  GenerateOptions,
  GenerateStats,
  Generation as GenerationResult,
  KernelTime,
  LoadOptions,
  Location,
  Message,
  Plan,
  PlanOptions,
  Progress,
  Prompt,
  SampleOptions,
} from './types.js';
