/*
 * Locks on the files beside the database: who reads an index generation, who builds one.
 *
 * flock and not fcntl's record locks, because those are lost when any descriptor of the file is
 * closed anywhere in the process, which a library cannot prevent in its host. The lock is on the
 * open file, so it ends with the process however that ends, and nothing stale is left behind. Where
 * the file system has no locks at all (some mounts of Lustre) a reader may still read: `unlocked`
 * says so, and who wants to throw a generation away must then not believe that it is unused.
 */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"

int fl_store_lock(const char *path, bool exclusive, bool wait, struct fl_store_lock *out,
                  fl_err *err)
{
    struct fl_store_lock l = {-1, false};
    int r;

    /* NFS gives an exclusive lock only to those who can write */
    l.fd = exclusive ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)
                     : open(path, O_RDONLY | O_CLOEXEC);
    if (l.fd < 0)
        return fl_fail(err, errno == ENOENT ? FL_ENOTFOUND : FL_EIO, "%s: cannot be opened: %s",
                       path, strerror(errno));
    do
        r = flock(l.fd, (exclusive ? LOCK_EX : LOCK_SH) | (wait ? 0 : LOCK_NB));
    while (r && errno == EINTR);
    if (r && errno == EWOULDBLOCK) {
        close(l.fd);
        return fl_fail(err, FL_EBACKEND, "%s: is in use by another process; try again later", path);
    }
    l.unlocked = r != 0;
    *out = l;
    return FL_OK;
}

void fl_store_unlock(struct fl_store_lock *l)
{
    if (l && l->fd >= 0) {
        close(l->fd);
        l->fd = -1;
    }
}
