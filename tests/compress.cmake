# Folding and the choice of lines under a budget.
fl_unit(shape ROOMS base compress)
