fl_unit(redact ROOMS base match redact)
fl_unit(redact_plant ROOMS base match redact)
fl_unit(redact_cases ROOMS base read match rules redact)
