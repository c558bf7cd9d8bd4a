# What is installed: the shared library and its headers, the program, the WebGPU library beside them, and what
# find_package(tandem) reads. Every path is relative, so the prefix may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The sources of the modules whose symbols it shows; the linker takes what these need from the other modules.
add_library(libtandem SHARED $<TARGET_OBJECTS:tandem_engine> $<TARGET_OBJECTS:tandem_base>)
target_link_libraries(libtandem PRIVATE tandem_engine)
target_link_libraries(libtandem INTERFACE tl::expected)
target_include_directories(libtandem INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(libtandem INTERFACE cxx_std_20)
# A new minor version may break the one before it.
set_target_properties(libtandem PROPERTIES OUTPUT_NAME tandem EXPORT_NAME tandem VERSION ${PROJECT_VERSION}
                                           SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                                           INSTALL_RPATH $ORIGIN)
file(RELATIVE_PATH libraries_from_programs /${CMAKE_INSTALL_FULL_BINDIR} /${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(tandem PROPERTIES INSTALL_RPATH $ORIGIN/${libraries_from_programs})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
install(TARGETS libtandem EXPORT tandem)
install(TARGETS tandem)
install(IMPORTED_RUNTIME_ARTIFACTS webgpu)
install(DIRECTORY include/tandem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT tandem NAMESPACE tandem:: FILE tandemTargets.cmake DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/tandemConfig.cmake ${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake DESTINATION ${package})
