# The WebGPU library: any shared library with the standard webgpu.h interface. Without one named,
# the pinned Dawn that tools/setup fetched into build/deps is used.
set(TANDEM_WEBGPU_LIBRARY "${PROJECT_SOURCE_DIR}/build/deps/webgpu/lib/libwebgpu_dawn.so"
    CACHE FILEPATH "A shared library that implements webgpu.h")
set(TANDEM_WEBGPU_INCLUDE "${PROJECT_SOURCE_DIR}/build/deps/webgpu/include"
    CACHE PATH "The folder that holds webgpu.h")
foreach(path ${TANDEM_WEBGPU_LIBRARY} ${TANDEM_WEBGPU_INCLUDE}/webgpu.h)
  if(NOT EXISTS ${path})
    message(FATAL_ERROR "${path} is missing: run `make setup`, or set TANDEM_WEBGPU_LIBRARY and "
                        "TANDEM_WEBGPU_INCLUDE to a webgpu.h library of your own.")
  endif()
endforeach()
add_library(webgpu SHARED IMPORTED)
set_target_properties(webgpu PROPERTIES IMPORTED_LOCATION ${TANDEM_WEBGPU_LIBRARY} IMPORTED_NO_SONAME ON
                                        INTERFACE_INCLUDE_DIRECTORIES ${TANDEM_WEBGPU_INCLUDE})
