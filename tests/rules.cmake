fl_unit(rules ROOMS base match rules)
