fl_unit(rules ROOMS base match rules)
fl_unit(filters ROOMS base read match rules)
fl_unit(trees ROOMS base match rules)
