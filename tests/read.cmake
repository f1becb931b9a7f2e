fl_unit(prefix ROOMS base read)
