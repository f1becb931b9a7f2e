# HTTP, the LLM client, prompts; against a server that misbehaves on purpose, and real ones.
pkg_check_modules(MHD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(GNUTLS REQUIRED IMPORTED_TARGET gnutls)
add_executable(llm_server fakes/llm_server.c)
target_link_libraries(llm_server PRIVATE fl_flags PkgConfig::MHD PkgConfig::GNUTLS Threads::Threads)
