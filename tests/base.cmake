fl_unit(base ROOMS base)
