/*
 * disk_sync FILE SECONDS : how often the disk takes 4 KiB at the end of a file and promises to keep them.
 *
 * Prints fdatasync()s per second. No transaction of any store on this disk can be quicker than that; a group
 * shares one.
 */
#include <fcntl.h>
#include <unistd.h>

#include "workload.h"

int main(int argc, char **argv)
{
	static char page[4096];
	double start, seconds, now;
	uint64_t n = 0;
	int fd;

	if (argc != 3) {
		fprintf(stderr, "usage: disk_sync FILE SECONDS\n");
		return 2;
	}
	seconds = (double)workload_number(argv[2], 1, 600);
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
	start = now = workload_seconds();
	for (; now - start < seconds; now = workload_seconds(), n++) {
		if (write(fd, page, sizeof page) != sizeof page || fdatasync(fd)) {
			perror(argv[1]);
			return 1;
		}
	}
	printf("%.0f\n", (double)n / (now - start));
	return close(fd);
}
