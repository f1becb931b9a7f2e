/*
 * Runs a fuzz target over files instead of under libFuzzer: every argument is a file, or a folder
 * of files. So the seeds, and each input that once broke something, are plain tests for any
 * compiler.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    struct stat st;
    size_t n;
    int status = -1;

    if (!f || fstat(fileno(f), &st) != 0)
        goto out;
    /* exactly as large as the input: a sanitizer then sees a read behind its end */
    data = malloc(st.st_size > 0 ? (size_t)st.st_size : 1);
    if (!data)
        goto out;
    n = fread(data, 1, (size_t)st.st_size, f);
    LLVMFuzzerTestOneInput(data, n);
    status = 0;
out:
    if (status)
        fprintf(stderr, "%s: cannot be read\n", path);
    if (f)
        fclose(f);
    free(data);
    return status;
}

static int run_folder(const char *path, unsigned *count)
{
    DIR *d = opendir(path);
    struct dirent *e;
    int status = 0;

    if (!d)
        return -1;
    while ((e = readdir(d)) != NULL) {
        char name[4096];
        if (e->d_name[0] == '.')
            continue;
        if (snprintf(name, sizeof(name), "%s/%s", path, e->d_name) >= (int)sizeof(name))
            status = -1;
        else if (run_file(name))
            status = -1;
        else
            ++*count;
    }
    closedir(d);
    return status;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    int status = 0;

    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode)) {
            if (run_folder(argv[i], &count))
                status = 1;
        } else if (run_file(argv[i])) {
            status = 1;
        } else {
            count++;
        }
    }
    printf("%u inputs\n", count);
    return count ? status : 1;
}
