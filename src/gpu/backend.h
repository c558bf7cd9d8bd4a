// Private to the implementations of device.h: that of this build. Either defines Device::State,
// CompiledKernel and BindGroup, an owner.
#pragma once

#ifdef __EMSCRIPTEN__
#include "gpu/web.h"
#else
#include "gpu/native.h"
#endif
