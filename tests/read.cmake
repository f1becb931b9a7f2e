fl_unit(prefix ROOMS base read)
fl_unit(reader ROOMS base read)
fl_unit(unpack ROOMS base read EXTERNAL PkgConfig::ZLIB PkgConfig::ZSTD PkgConfig::LZMA)
