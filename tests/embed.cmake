fl_unit(tokens ROOMS base embed EXTERNAL Threads::Threads)
