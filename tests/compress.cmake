# Folding and the choice of lines under a budget.
fl_unit(shape ROOMS base compress)
fl_unit(shapes ROOMS base compress)
fl_unit(digest ROOMS base compress embed EXTERNAL Threads::Threads)
