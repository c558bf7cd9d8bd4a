# The browser's build: the modules webgpu_llama (plain) and gemma4_mtp, each for wall-clock timing and, as
# NAME.profile, with GPU timestamps. What differs between them is compiled for each; the rest is one library.
#
#   emcmake cmake --preset web && cmake --build build/web-objects

# Header-only libraries in a folder of their own: /usr/include would hide Emscripten's C library.
set(headers ${CMAKE_BINARY_DIR}/include)
foreach(header fmt/format.h tl/expected.hpp nlohmann/json.hpp)
  find_path(folder_of_${header} ${header} PATHS /usr/include /usr/local/include NO_CMAKE_FIND_ROOT_PATH NO_CACHE)
  if(NOT folder_of_${header})
    message(FATAL_ERROR "${header} is missing: run `make setup`.")
  endif()
  cmake_path(GET header PARENT_PATH folder)
  file(MAKE_DIRECTORY ${headers})
  file(CREATE_LINK ${folder_of_${header}}/${folder} ${headers}/${folder} SYMBOLIC)
endforeach()

set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-Os -DNDEBUG")
set(src ${PROJECT_SOURCE_DIR}/src)
# Operators that only drafts take: the plain modules do not have their kernels.
set(mtp_operators draft gathered_linear linear_add_norm linear_top_k scatter top_k)
file(GLOB operators CONFIGURE_DEPENDS ${src}/ops/*.cpp ${src}/ops/*/*.cpp)
list(FILTER operators EXCLUDE REGEX "_reference\\.cpp$|/label\\.cpp$")
# Tables, recounts and rows of int8 that the host needs are kept with the references.
list(APPEND operators ${src}/ops/accept/accept_reference.cpp ${src}/ops/qkv_rope/qkv_rope_reference.cpp
                      ${src}/ops/quantize/quantize_reference.cpp)
file(GLOB mtp_kernels CONFIGURE_DEPENDS ${src}/ops/*/*.wgsl)
set(plain_kernels ${mtp_kernels})
foreach(operator ${mtp_operators})
  list(FILTER plain_kernels EXCLUDE REGEX /ops/${operator}/)
endforeach()
file(GLOB included CONFIGURE_DEPENDS ${src}/ops/*.wgsl)

add_library(tandem_web STATIC
  ${src}/base/digest.cpp ${src}/base/error.cpp ${src}/base/files.cpp ${src}/base/json.cpp ${src}/base/sampling.cpp
  ${src}/base/sha256_blocks.cpp ${src}/base/web.cpp
  ${src}/spec/config.cpp ${src}/spec/config_fields.cpp ${src}/spec/gemma3_config.cpp ${src}/spec/layout.cpp ${src}/spec/pair.cpp ${src}/spec/tensors.cpp
  ${src}/gpu/command_list.cpp ${src}/gpu/device.cpp ${src}/gpu/dispatch.cpp ${src}/gpu/driver_errors.cpp ${src}/gpu/web.cpp ${src}/gpu/wgsl.cpp
  ${operators}
  ${src}/model/drafting.cpp ${src}/model/model.cpp ${src}/model/recording.cpp ${src}/model/weights.cpp
  ${src}/text/added_tokens.cpp ${src}/text/bpe.cpp ${src}/text/chat.cpp ${src}/text/generation_config.cpp
  ${src}/text/stop_strings.cpp ${src}/text/table.cpp ${src}/text/tokenizer.cpp ${src}/text/utf8.cpp
  ${src}/artifact/in_memory.cpp ${src}/artifact/load_plan.cpp ${src}/artifact/manifest.cpp
  ${src}/artifact/ordering_watch.cpp ${src}/artifact/safetensors.cpp ${src}/artifact/shard_layout.cpp
  ${src}/artifact/token_ordering.cpp
  ${src}/engine/engine.cpp ${src}/engine/history.cpp ${src}/engine/loop.cpp ${src}/engine/mtp_policy.cpp
  ${src}/engine/open_target.cpp ${src}/engine/opening.cpp ${src}/engine/profile.cpp ${src}/engine/prompts.cpp
  ${src}/engine/session.cpp
  ${src}/web/options.cpp)
target_include_directories(tandem_web PUBLIC ${PROJECT_SOURCE_DIR}/include ${src})
target_include_directories(tandem_web SYSTEM PUBLIC ${headers})
# Without the thousands separators of locales, and so without locales.
target_compile_definitions(tandem_web PUBLIC FMT_HEADER_ONLY FMT_STATIC_THOUSANDS_SEPARATOR=',')
target_compile_options(tandem_web PUBLIC
  -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections -msimd128 -mbulk-memory
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=.
  "SHELL:-include ${PROJECT_SOURCE_DIR}/cmake/libcxx13.h")
target_compile_options(tandem_web PRIVATE -Wall -Wextra -Wno-missing-field-initializers
                                          $<$<BOOL:${TANDEM_WARNINGS_AS_ERRORS}>:-Werror>)

# The headers that take longest.
target_precompile_headers(tandem_web PRIVATE <algorithm> <map> <memory> <optional> <span> <string> <vector>
                                             <fmt/format.h> <nlohmann/json.hpp> <tl/expected.hpp>)

function(tandem_kernels out)
  add_custom_command(
    OUTPUT ${out}
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/embed_wgsl.py ${out} ${ARGN}
    DEPENDS ${PROJECT_SOURCE_DIR}/tools/embed_wgsl.py ${ARGN} ${included}
    VERBATIM)
endfunction()
tandem_kernels(${CMAKE_BINARY_DIR}/plain_kernels.cpp ${plain_kernels})
tandem_kernels(${CMAKE_BINARY_DIR}/mtp_kernels.cpp ${mtp_kernels})

find_program(TANDEM_WASM_OPT wasm-opt REQUIRED NO_CMAKE_FIND_ROOT_PATH)

# tandem_web_module(FILE FACTORY KERNELS TIMING DEFINITIONS...)
function(tandem_web_module file factory kernels timing)
  string(REPLACE . _ target ${file})
  add_executable(${target} ${src}/web/exports.cpp ${src}/ops/label.cpp ${src}/model/plan.cpp ${src}/model/target.cpp
                           ${src}/model/target_sequence.cpp ${CMAKE_BINARY_DIR}/${kernels}_kernels.cpp)
  target_compile_definitions(${target} PRIVATE TANDEM_VERSION="${PROJECT_VERSION}" ${ARGN})
  target_link_libraries(${target} PRIVATE tandem_web)
  # Debian's Emscripten finds its parser of JavaScript there, whatever node runs it.
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${file} SUFFIX .js
                                             RUNTIME_OUTPUT_DIRECTORY ${TANDEM_WEB_OUTPUT}
                                             RULE_LAUNCH_LINK "${CMAKE_COMMAND} -E env NODE_PATH=/usr/share/nodejs")
  set(library ${src}/gpu/web.js ${src}/gpu/${timing}.js)
  set(api ${src}/web/engine.js)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS "${library};${api};${src}/web/load.js")
  list(TRANSFORM library PREPEND --js-library=)
  # Emscripten 3.1.6 cannot parse today's JavaScript, which it minifies from -O2 on; so the wasm is optimized after it.
  target_link_options(${target} PRIVATE
    -O1 --no-entry ${library} --pre-js=${src}/web/load.js --post-js=${api}
    -sMODULARIZE=1 -sEXPORT_ES6=1 -sUSE_ES6_IMPORT_META=1 -sEXPORT_NAME=${factory} -sENVIRONMENT=web,worker
    -sALLOW_MEMORY_GROWTH=1 -sINITIAL_MEMORY=4MB -sMAXIMUM_MEMORY=1GB -sTOTAL_STACK=256KB
    -sFILESYSTEM=0 -sDYNAMIC_EXECUTION=0 -sSTRICT=1 -sSUPPORT_LONGJMP=0 -sEXPORTED_FUNCTIONS=_malloc,_free)
  set(wasm ${TANDEM_WEB_OUTPUT}/${file}.wasm)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${TANDEM_WASM_OPT} -Os --enable-simd --enable-bulk-memory --strip-debug --strip-producers ${wasm} -o ${wasm}
    VERBATIM)
endfunction()

set(TANDEM_WEB_OUTPUT ${PROJECT_SOURCE_DIR}/build/web CACHE PATH "Where the modules go")
tandem_web_module(webgpu_llama createWebGPULlama plain web_no_timing TANDEM_PLAIN)
tandem_web_module(webgpu_llama.profile createWebGPULlama plain web_timing TANDEM_PLAIN TANDEM_PROFILE)
tandem_web_module(gemma4_mtp createGemma4Mtp mtp web_no_timing)
tandem_web_module(gemma4_mtp.profile createGemma4Mtp mtp web_timing TANDEM_PROFILE)
