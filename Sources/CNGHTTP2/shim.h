#ifndef POSTBELL_CNGHTTP2_H
#define POSTBELL_CNGHTTP2_H
#include <nghttp2/nghttp2.h>
#endif
