fl_unit(tokens ROOMS base embed EXTERNAL Threads::Threads)
fl_unit(normal ROOMS base embed)
