# The incident memory. The fault tests give SQLite an allocator and a file system of their own.
fl_unit(store ROOMS base store)
fl_unit(store_search ROOMS base store)
fl_unit(incident_yaml ROOMS base store)
