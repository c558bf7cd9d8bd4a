/**
 * Kernels write all workgroup memory that they read; zeroing it first costs most of the time that a software adapter
 * takes to compile them.
 */
export const dawnFeatures = 'disable_workgroup_init';
