/* SPDX-License-Identifier: MIT */
/*
 * mandelbrot.c - draws the Mandelbrot set: a small one as text, or one of the given size as a
 * PGM file on standard output.
 *
 *     mandelbrot [WIDTH HEIGHT]
 *
 * The picture is divided into tiles that idle workers share. Some tiles take a thousand times
 * longer than others, and the program need not know which.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

enum {
    STEPS_MAX = 1000,
};

struct picture {
    size_t width, height;
    unsigned char *pixels;
};

static unsigned char color(double x, double y)
{
    double re = 0;
    double im = 0;
    int steps = 0;
    while (steps < STEPS_MAX && re * re + im * im < 4) {
        double next = re * re - im * im + x;
        im = 2 * re * im + y;
        re = next;
        steps++;
    }
    return steps == STEPS_MAX ? 0 : (unsigned char)(55 + steps % 201);
}

static int draw_tile(const weft_tile *tile, void *arg)
{
    const struct picture *picture = arg;
    for (size_t row = tile->first_row; row < tile->end_row; row++) {
        for (size_t column = tile->first_column; column < tile->end_column; column++) {
            double x = -2.2 + 3.2 * (double)column / (double)picture->width;
            double y = -1.2 + 2.4 * (double)row / (double)picture->height;
            picture->pixels[row * picture->width + column] = color(x, y);
        }
    }
    return 0;
}

static int draw(void *arg)
{
    struct picture *picture = arg;
    return weft_for_2d(picture->height, picture->width, draw_tile, picture, NULL);
}

static void print_text(const struct picture *picture)
{
    for (size_t row = 0; row < picture->height; row++) {
        for (size_t column = 0; column < picture->width; column++) {
            unsigned char pixel = picture->pixels[row * picture->width + column];
            putchar(pixel == 0 ? '#' : pixel > 60 ? '.' : ' ');
        }
        putchar('\n');
    }
}

int main(int argc, char **argv)
{
    bool as_text = argc != 3;
    struct picture picture = { .width = 78, .height = 30 };
    if (!as_text) {
        picture.width = strtoul(argv[1], NULL, 10);
        picture.height = strtoul(argv[2], NULL, 10);
    }
    if ((argc != 1 && argc != 3) || picture.width == 0 || picture.height == 0) {
        fprintf(stderr, "usage: mandelbrot [WIDTH HEIGHT]\n");
        return 2;
    }
    picture.pixels = calloc(picture.width, picture.height);
    int err = picture.pixels != NULL ? weft_run(NULL, draw, &picture) : -ENOMEM;
    if (err != 0) {
        fprintf(stderr, "mandelbrot: %s\n", weft_strerror(err));
    } else if (as_text) {
        print_text(&picture);
    } else {
        printf("P5 %zu %zu 255\n", picture.width, picture.height);
        (void)fwrite(picture.pixels, picture.width, picture.height, stdout);
    }
    free(picture.pixels);
    if (err == 0 && fflush(stdout) != 0) {
        perror("mandelbrot");
        return 1;
    }
    return err != 0;
}
