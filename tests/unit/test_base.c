#include "base/arena.h"
#include "base/arr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mask.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/usec.h"

#include "random.h"

#include <check.h>
#include <ctype.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* ---- mem, arr */

START_TEST(test_mem)
{
	char *p = ff_xmemdup("a\0b", 3);
	ck_assert_mem_eq(p, "a\0b\0", 4);
	free(p);
	p = ff_xmemdup(NULL, 0);
	ck_assert_str_eq(p, "");
	free(p);
	ck_assert_ptr_null(ff_xstrdup(NULL));
	free(ff_xmalloc(0));
	free(ff_xcalloc(0, 8));
	free(ff_xrealloc(NULL, 0, 8));
}
END_TEST

START_TEST(test_arr)
{
	int *list = NULL;
	size_t n = 0, cap = 0;
	for (int i = 0; i < 1000; i++) {
		*FF_ARR_ADD(list, n, cap) = i;
	}
	ck_assert_uint_eq(n, 1000);
	for (int i = 0; i < 1000; i++) {
		ck_assert_int_eq(list[i], i);
	}
	free(list);
}
END_TEST

/* ---- str */

START_TEST(test_str_compare)
{
	ck_assert(ff_str_eq(FF_STR("ab"), FF_STR("ab")));
	ck_assert(!ff_str_eq(FF_STR("ab"), FF_STR("abc")));
	ck_assert(ff_str_eq((struct ff_str){NULL, 0}, FF_STR("")));
	ck_assert(ff_str_eqz(FF_STR("ab"), "ab"));
	ck_assert(!ff_str_eqz(ff_str_n("a\0b", 3), "a"));
	ck_assert_int_lt(ff_str_cmp(FF_STR("a"), FF_STR("ab")), 0);
	ck_assert_int_gt(ff_str_cmp(FF_STR("\xff"), FF_STR("a")), 0);
	ck_assert_int_eq(ff_str_cmp(FF_STR("a"), FF_STR("a")), 0);
	ck_assert(ff_str_starts(FF_STR("abc"), FF_STR("ab")));
	ck_assert(!ff_str_starts(FF_STR("a"), FF_STR("ab")));
	ck_assert(ff_str_ends(FF_STR("x.err"), FF_STR(".err")));
	ck_assert(!ff_str_ends(FF_STR("err"), FF_STR(".err")));
	ck_assert(ff_str_starts((struct ff_str){NULL, 0}, FF_STR("")));
}
END_TEST

START_TEST(test_str_find)
{
	struct ff_str s = ff_str_n("ab\0ab", 5);
	ck_assert_int_eq(ff_str_find(s, FF_STR("ab"), 0), 0);
	ck_assert_int_eq(ff_str_find(s, FF_STR("ab"), 1), 3);
	ck_assert_int_eq(ff_str_find(s, FF_STR("ab"), 4), -1);
	ck_assert_int_eq(ff_str_find(s, FF_STR("ab"), 9), -1);
	ck_assert_int_eq(ff_str_find(s, FF_STR(""), 5), 5);
	ck_assert_int_eq(ff_str_find(s, ff_str_n("\0a", 2), 0), 2);
	ck_assert_int_eq(ff_str_chr(s, 'b', 2), 4);
	ck_assert_int_eq(ff_str_chr(s, 'b', 5), -1);
	ck_assert_int_eq(ff_str_chr((struct ff_str){NULL, 0}, 'b', 0), -1);
	ck_assert(ff_str_eq(ff_str_skip(FF_STR("abc"), 2), FF_STR("c")));
	ck_assert_uint_eq(ff_str_skip(FF_STR("abc"), 9).n, 0);
	ck_assert(ff_str_eq(ff_str_trim(FF_STR(" \ta b\t ")), FF_STR("a b")));
	ck_assert_uint_eq(ff_str_trim(FF_STR(" \t ")).n, 0);
}
END_TEST

static const struct {
	const char *text;
	bool good;
	int64_t value;
} int_rows[] = {
	{"0", true, 0},
	{"-0", true, 0},
	{"007", true, 7},
	{"9223372036854775807", true, INT64_MAX},
	{"-9223372036854775808", true, INT64_MIN},
	{"9223372036854775808", false, 0},
	{"-9223372036854775809", false, 0},
	{"99999999999999999999999", false, 0},
	{"", false, 0},
	{"-", false, 0},
	{"+1", false, 0},
	{" 1", false, 0},
	{"1x", false, 0},
};

START_TEST(test_str_int)
{
	int64_t v = 42;
	ck_assert_int_eq(ff_str_int(ff_str_z(int_rows[_i].text), &v), int_rows[_i].good);
	ck_assert_int_eq(v, int_rows[_i].good ? int_rows[_i].value : 42);
}
END_TEST

/* Lengths around a block, where padding changes; the bytes are all 'a'. */
static const struct {
	size_t n;
	const char *hex;
} sha256_rows[] = {
	{0,
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{55,
		"9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
	{56,
		"b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
	{63,
		"7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
	{64,
		"ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
	{119,
		"31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
	{120,
		"2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
	{1000000,
		"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

START_TEST(test_sha256)
{
	char hex[FF_SHA256_HEX], *text = ff_xcalloc(sha256_rows[_i].n + 1, 1);
	struct ff_sha256 s;
	memset(text, 'a', sha256_rows[_i].n);
	for (size_t piece = 1; piece <= 130; piece += 43) {
		ff_sha256_init(&s);
		for (size_t at = 0; at < sha256_rows[_i].n; at += piece) {
			size_t left = sha256_rows[_i].n - at;
			ff_sha256_add(&s, text + at, left < piece ? left : piece);
		}
		ff_sha256_hex(&s, hex);
		ck_assert_str_eq(hex, sha256_rows[_i].hex);
	}
	free(text);
}
END_TEST

START_TEST(test_str_digits)
{
	int64_t v = -1;
	ck_assert_uint_eq(ff_str_digits(FF_STR("x1"), &v), 0);
	ck_assert_int_eq(v, -1);
	ck_assert_uint_eq(ff_str_digits(FF_STR("123x"), &v), 3);
	ck_assert_int_eq(v, 123);
	ck_assert_uint_eq(ff_str_digits(FF_STR("99999999999999999999"), &v), 18);
	ck_assert_int_eq(v, 999999999999999999);
	/* FNV-1a's published value of "foobar" */
	ck_assert_uint_eq(ff_str_hash(FF_STR("foobar"), FF_HASH_INIT), 0x85944171f73967e8ull);
	ck_assert_uint_eq(ff_str_hash(FF_STR("bar"), ff_str_hash(FF_STR("foo"), FF_HASH_INIT)),
		0x85944171f73967e8ull);
}
END_TEST

/* ---- buf */

START_TEST(test_buf)
{
	struct ff_buf b = {0};
	ff_buf_clear(&b);
	ck_assert_uint_eq(ff_buf_str(&b).n, 0);
	ff_buf_addz(&b, "ab");
	ff_buf_addc(&b, 'c');
	ff_buf_add(&b, "\0d", 2);
	ff_buf_adds(&b, FF_STR("e"));
	ck_assert_mem_eq(b.p, "abc\0de", 7);
	ff_buf_consume(&b, 4);
	ck_assert_str_eq(b.p, "de");
	ff_buf_consume(&b, 99);
	ck_assert_str_eq(b.p, "");
	for (int i = 0; i < 1000; i++) {
		ff_buf_addf(&b, "%d,", i);
	}
	ck_assert_uint_eq(b.len, 3890);
	ck_assert(ff_str_ends(ff_buf_str(&b), FF_STR("998,999,")));
	ff_buf_clear(&b);
	ff_buf_addf(&b, "%0500d", 7);
	ck_assert_uint_eq(b.len, 500);
	memcpy(ff_buf_reserve(&b, 3), "xyz", 3);
	b.len += 3;
	char *taken = ff_buf_take(&b);
	ck_assert_uint_eq(strlen(taken), 503);
	free(taken);
	ck_assert_ptr_null(b.p);
	taken = ff_buf_take(&b);
	ck_assert_str_eq(taken, "");
	free(taken);
	ff_buf_finish(&b);
	ff_buf_finish(&b);
	ff_buf_finish(NULL);
}
END_TEST

/* ---- arena */

START_TEST(test_arena)
{
	struct ff_arena a = {0};
	char *last = NULL;
	for (size_t n = 1; n < 3000; n += 7) {
		char *p = ff_arena_alloc(&a, n);
		ck_assert_uint_eq((uintptr_t)p % _Alignof(max_align_t), 0);
		for (size_t i = 0; i < n; i++) {
			ck_assert_int_eq(p[i], 0);
			p[i] = 'x';
		}
		ck_assert_ptr_ne(p, last);
		last = p;
	}
	char *big = ff_arena_alloc(&a, 3u << 20);
	big[0] = big[(3u << 20) - 1] = 'x';
	ck_assert_str_eq(ff_arena_fmt(&a, "%s-%d", "a", 7), "a-7");
	ck_assert_str_eq(ff_arena_strdup(&a, "abc"), "abc");
	ck_assert_ptr_null(ff_arena_strdup(&a, NULL));
	ck_assert_str_eq(ff_arena_str(&a, (struct ff_str){NULL, 0}), "");
	int *numbers = FF_ARENA_ARR(&a, int, 5);
	ck_assert_int_eq(numbers[4], 0);
	ff_arena_finish(&a);
	ff_arena_finish(&a);
	ff_arena_finish(NULL);
}
END_TEST

/* ---- err */

START_TEST(test_err)
{
	struct ff_err e = {{0}};
	ck_assert_int_eq(ff_err_set(&e, FF_EJSON, "%s:%d: no\nobject", "f", 3), FF_EJSON);
	ck_assert_str_eq(e.text, "f:3: no?object");
	ck_assert_int_eq(ff_err_set(&e, -ENOENT, "other"), -ENOENT);
	ck_assert_str_eq(e.text, "f:3: no?object");
	ck_assert_int_eq(ff_err_set(NULL, -5, "x"), -5);
	ck_assert_str_eq(ff_strerror(FF_ELIMIT), "a limit was reached");
	ck_assert_str_eq(ff_strerror(-ENOENT), strerror(ENOENT));
	ck_assert_ptr_nonnull(ff_strerror(INT32_MIN));
}
END_TEST

START_TEST(test_err_is_cut_between_characters)
{
	char long_text[1000];
	for (size_t pad = 0; pad < 4; pad++) {
		memset(long_text, 'x', pad);
		size_t n = pad;
		for (; n + 3 < sizeof long_text; n += 3) {
			memcpy(long_text + n, "\xe2\x82\xac", 3);
		}
		long_text[n] = '\0';
		struct ff_err e = {{0}};
		ff_err_set(&e, FF_EINPUT, "%s", long_text);
		size_t len = strlen(e.text);
		ck_assert_uint_ge(len, sizeof e.text - 4);
		ck_assert_uint_eq((len - pad) % 3, 0);
	}
}
END_TEST

/* ---- map */

START_TEST(test_map)
{
	enum { N = 5000 };
	static int values[N];
	struct random r = random_init(1);
	struct ff_map m = {0};
	bool in[N] = {false};
	size_t len = 0;
	char key[32];
	ck_assert_ptr_null(ff_map_get(&m, FF_STR("a")));
	ck_assert_ptr_null(ff_map_del(&m, FF_STR("a")));
	for (int step = 0; step < 60000; step++) {
		uint32_t i = random_below(&r, N);
		int n = snprintf(key, sizeof key, "rank-%u", i);
		struct ff_str k = {key, (size_t)n};
		ck_assert_msg((ff_map_get(&m, k) == &values[i]) == in[i], "seed %lu", r.seed);
		bool put = random_below(&r, 2);
		void *was = put ? ff_map_put(&m, k, &values[i]) : ff_map_del(&m, k);
		ck_assert_msg((was == &values[i]) == in[i], "seed %lu", r.seed);
		len += put && !in[i];
		len -= !put && in[i];
		in[i] = put;
		ck_assert_uint_eq(m.len, len);
	}
	size_t pos = 0, seen = 0;
	struct ff_str k;
	void *v;
	while (ff_map_next(&m, &pos, &k, &v)) {
		int n = snprintf(key, sizeof key, "rank-%td", (int *)v - values);
		ck_assert(ff_str_eq(k, ff_str_n(key, (size_t)n)));
		seen++;
	}
	ck_assert_uint_eq(seen, len);
	ck_assert_uint_le(m.nslots, 4 * N);
	ff_map_finish(&m);
	ff_map_finish(&m);
	ff_map_finish(NULL);
}
END_TEST

START_TEST(test_map_keys)
{
	int a, b, c;
	struct ff_map m = {0};
	ff_map_put(&m, FF_STR(""), &a);
	ff_map_put(&m, ff_str_n("\0", 1), &b);
	ff_map_put(&m, ff_str_n("\0\0", 2), &c);
	ck_assert_ptr_eq(ff_map_get(&m, (struct ff_str){NULL, 0}), &a);
	ck_assert_ptr_eq(ff_map_get(&m, ff_str_n("\0", 1)), &b);
	ck_assert_ptr_eq(ff_map_get(&m, ff_str_n("\0\0", 2)), &c);
	ck_assert_ptr_eq(ff_map_put(&m, FF_STR(""), &c), &a);
	ff_map_finish(&m);
}
END_TEST

/* Keys chosen to share their place make the seed change, not the time quadratic. */
START_TEST(test_map_hostile_keys)
{
	static int value;
	struct ff_map m = {0};
	char key[32];
	for (uint32_t i = 0, found = 0; found < 400; i++) {
		int n = snprintf(key, sizeof key, "%u", i);
		struct ff_map one = {0};
		ff_map_put(&one, ff_str_n(key, (size_t)n), &value);
		size_t at = 0;
		while (!one.slots[at].key) {
			at++;
		}
		bool same = (one.slots[at].hash & 0x3ff) == 7;
		ff_map_finish(&one);
		if (same) {
			ff_map_put(&m, ff_str_n(key, (size_t)n), &value);
			found++;
		}
	}
	ck_assert_uint_eq(m.len, 400);
	ck_assert_uint_eq(m.nslots, 1024);
	ck_assert_uint_gt(m.seed, 0);
	ck_assert_uint_lt(m.seed, 8);
	ff_map_finish(&m);
}
END_TEST

/* ---- mask */

static const struct {
	const char *in, *out;
} mask_rows[] = {
	{"", ""},
	{"hf_", "hf_"},
	{"token hf_abcdefghijklmnopqrstuvwxyzABCDEFGH end",
		"token <secret:hf:HASH>********************* end"},
	{"hf_abcdefghijklmnopqrstuvwxyzABC", "hf_abcdefghijklmnopqrstuvwxyzABC"}, /* 29 */
	{"hf_abcdefghijklmnopqrstuvwxyzABCD", "<secret:hf:HASH>*****************"},
	{"shf_abcdefghijklmnopqrstuvwxyzABCD", "shf_abcdefghijklmnopqrstuvwxyzABCD"},
	{"HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCD\n",
		"HF_TOKEN=<secret:hf:HASH>*****************\n"},
	{"AKIAIOSFODNN7EXAMPLE", "<secret:aws:HASH>***"},
	{"'ASIAIOSFODNN7EXAMPLE'", "'<secret:aws:HASH>***'"},
	{"AKIAIOSFODNN7EXAMPLEX", "AKIAIOSFODNN7EXAMPLEX"},
	{"AKIAIOSFODNN7EXAMPL", "AKIAIOSFODNN7EXAMPL"},
	{"XAKIAIOSFODNN7EXAMPLE", "XAKIAIOSFODNN7EXAMPLE"},
	{"AKIAIOSFODNN7exampleAKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7exampleAKIAIOSFODNN7EXAMPLE"},
	{"AKIAAKIAIOSFODNN7EXAMPLE", "AKIAAKIAIOSFODNN7EXAMPLE"},
	{"IA_IAhf_IA", "IA_IAhf_IA"},
	{"\33[1;33mhf_abcdefghijklmnopqrstuvwxyzABCD\33[0m",
		"\33[1;33m<secret:hf:HASH>*****************\33[0m"},
	{"'a\\nsk-proj-abcdefghij0123456789'", "'a\\n<secret:openai:HASH>********'"},
	{"?k%3DAKIAIOSFODNN7EXAMPLE&", "?k%3D<secret:aws:HASH>***&"},
	{"a glpat-abcdefghij_0123456789 b", "a <secret:gitlab:HASH>******* b"},
	{"nvapi-abcdefghij0123456789abcdefghij", "<secret:nvidia:HASH>****************"},
	{"ghp_abcdefghijklmnopqrstuvwxyz0123456789", "<secret:github:HASH>********************"},
	{"a github_pat_11ABCDEFG0123456789_abc, b", "a <secret:github:HASH>**************, b"},
	{"wandb: wandb_v1_abcdefghij_klmnopqrstuv x", "wandb: <secret:wandb:HASH>************* x"},
	{"key sk-proj-abcdefghij0123456789 used", "key <secret:openai:HASH>******** used"},
	{"sk-learn-contrib-is-a-long-name-of-words", "sk-learn-contrib-is-a-long-name-of-words"},
	{"AIzaSyA0123456789abcdefghijklmnopqrstuv", "<secret:gcp:HASH>**********************"},
	{"ya29.a0AfH6SMBx0123456789abc", "<secret:gcp:HASH>***********"},
	{"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_1 end",
		"jwt <secret:jwt:HASH>************************** end"},
	{"eyJust a word", "eyJust a word"},
	{"Authorization: Bearer abcdef0123456789", "Authorization: Bearer <secret:bearer:H"},
	{"bearer of bad news from the front", "bearer of bad news from the front"},
	{"-H 'authorization: Basic dXNlcjpwYXNzd29yZDE='",
		"-H 'authorization: Basic <secret:bearer:HASH>'"},
	{"Basic configuration_file_v2_of_all", "Basic configuration_file_v2_of_all"},
	{"AUTHORIZATION: BEARER abcdef0123456789", "AUTHORIZATION: BEARER <secret:bearer:H"},
	{"{'Authorization': 'Basic dXNlcjpwYXNzd29yZDE='}",
		"{'Authorization': 'Basic <secret:bearer:HASH>'}"},
	{"\"Authorization\": \"token abcdef0123456789abcdef\"",
		"\"Authorization\": \"token <secret:bearer:HASH>**\""},
	{"the authorization token_of_the_user_was_not_found",
		"the authorization token_of_the_user_was_not_found"},
	{"redis://:hunter2@10.0.0.1:6379/0", "redis://:<secret@10.0.0.1:6379/0"},
	{"amqp://me:hun@ter2@host/x", "amqp://me:<secret:@host/x"},
	{"git clone https://me:hunter2@host/x.git", "git clone https://me:<secret@host/x.git"},
	{"s3://bucket:80/path/to@rank", "s3://bucket:80/path/to@rank"},
	{"tcp://10.0.0.1:29500", "tcp://10.0.0.1:29500"},
	{"AccountKey=abcdefghijklmnopqrstuvwxyz0123456789+/==;x",
		"AccountKey=<secret:key:HASH>***********************;x"},
	{"?sv=1&sig=abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH",
		"?sv=1&sig=<secret:azure:HASH>*************************"},
	{"WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567",
		"WANDB_API_KEY=<secret:key:HASH>***********************"},
	{"AWS_SECRET_ACCESS_KEY = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'",
		"AWS_SECRET_ACCESS_KEY = '<secret:key:HASH>***********************'"},
	{"{\"client_secret\": \"abcdefghijklmnopqrst\"}",
		"{\"client_secret\": \"<secret:key:HASH>***\"}"},
	{"password=hunter2!", "password=<secret:"},
	{"password        : 'hunter2!'", "password        : '<secret:'"},
	{"pass\\\"api_key\\\": \\\"abcdefghijklmnopqrst\\\"",
		"pass\\\"api_key\\\": \\\"<secret:key:HASH>***\\\""},
	{"{\"SessionToken\": \"abcdefghijklmnopqrst\"}",
		"{\"SessionToken\": \"<secret:key:HASH>***\"}"},
	{"Namespace(api_key=['abcdefghijklmnopqrst'])",
		"Namespace(api_key=['<secret:key:HASH>***'])"},
	{"train.py --wandb-api-key abcdefghijklmnopqrst --lr 1",
		"train.py --wandb-api-key <secret:key:HASH>*** --lr 1"},
	{"['train.py', '--api_key', 'abcdefghijklmnopqrst', '--lr']",
		"['train.py', '--api_key', '<secret:key:HASH>***', '--lr']"},
	{"train.py --password --learning-rate-of-the-first",
		"train.py --password --learning-rate-of-the-first"},
	{"Authorization: Basic YWRhOmpPdFppMWpaaThueXNTZleFcz",
		"Authorization: Basic <secret:bearer:HASH>**********"},
	{"+ wandb login 0123456789abcdef0123456789abcdef01234567",
		"+ wandb login <secret:wandb:HASH>*********************"},
	{"wandb login --relogin 0123456789abcdef0123456789abcdef01234567",
		"wandb login --relogin <secret:wandb:HASH>*********************"},
	{"please login 0123456789abcdef0123456789abcdef01234567",
		"please login 0123456789abcdef0123456789abcdef01234567"},
	{"POST https://hooks.slack.com/services/T012AB3CD/B012AB3CD/abcDEF0123456789ghiJKL01 x",
		"POST "
		"https://hooks.slack.com/services/<secret:slack:HASH>************************* x"},
	{"see https://hooks.slack.com/services/README for webhooks.",
		"see https://hooks.slack.com/services/README for webhooks."},
	{"setenv WANDB_API_KEY 0123456789abcdef0123 ; x",
		"setenv WANDB_API_KEY <secret:key:HASH>*** ; x"},
	{"+ export HF_TOKEN 'abcdefghijklmnopqrst'", "+ export HF_TOKEN '<secret:key:HASH>***'"},
	{"ENV MYSQL_PWD \"hunter2x9\"", "ENV MYSQL_PWD \"<secret:k\""},
	{"can not export password incorrect", "can not export password incorrect"},
	{"the WANDB_API_KEY abcdefghijklmnopqrst", "the WANDB_API_KEY abcdefghijklmnopqrst"},
	{"[('HOST', 'a'), ('WANDB_API_KEY', '0123456789abcdef0123')]",
		"[('HOST', 'a'), ('WANDB_API_KEY', '<secret:key:HASH>***')]"},
	{"missing: ['AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'password', 'username']",
		"missing: ['AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'password', 'username']"},
	{"machine api.wandb.ai login user password hunter2x9 x",
		"machine api.wandb.ai login user password <secret:k x"},
	{"the login password failed, login with password failed",
		"the login password failed, login with password failed"},
	{"    password 0123456789abcdef0123456789abcdef01234567",
		"    password <secret:wandb:HASH>*********************"},
	{"HF_TOKEN -> abcdefghijklmnopqrs1", "HF_TOKEN -> <secret:key:HASH>***"},
	{"'api_key' => 'abcdefghijklmnopqrst'", "'api_key' => '<secret:key:HASH>***'"},
	{"pad_token -> 50256, password -> wrong words",
		"pad_token -> 50256, password -> wrong words"},
	{"say xoxb-123456789012-abcdefghijkl", "say <secret:slack:HASH>***********"},
	{"say xapp-1-A0123456789-abcdefghijkl", "say <secret:slack:HASH>************"},
	{"xoxo-hugs-and-kisses-to-you", "xoxo-hugs-and-kisses-to-you"},
	{"CI_TOKEN=abcdefghijklmnopqrs1", "CI_TOKEN=<secret:key:HASH>***"},
	{"eos_token='<|endoftext|>' pad_token=<|finetune_right_pad_id|>",
		"eos_token='<|endoftext|>' pad_token=<|finetune_right_pad_id|>"},
	{"MYSQL_PWD=hunter2x9 PWD=/home/ada/project1",
		"MYSQL_PWD=<secret:k PWD=/home/ada/project1"},
	{"DB_PASS=hunter2x9 forward_pass=123456us", "DB_PASS=<secret:k forward_pass=123456us"},
	{"password: incorrect or expired", "password: incorrect or expired"},
	{"missing api_key: see the manual-of-the-service",
		"missing api_key: see the manual-of-the-service"},
	{"pad_token: 50256, secret=short", "pad_token: 50256, secret=short"},
	{"-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\n-----END CERTIFICATE-----",
		"-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\n-----END "
		"CERTIFICATE-----"},
	{"-----BEGIN RSA PRIVATE KEY-----\n[rank0]: MIIEvQIBADANBgkqhkiG9w0BAQ\n-----END RSA "
	 "PRIVATE "
	 "KEY-----",
		"-----BEGIN RSA PRIVATE KEY-----\n[rank0]: <secret:pem:HASH>*********\n-----END "
		"RSA PRIVATE "
		"KEY-----"},
	{"\"-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQ\\n-----END PRIVATE KEY-----\"",
		"\"-----BEGIN PRIVATE KEY-----\\n<secret:pem:HASH>*********\\n-----END PRIVATE "
		"KEY-----\""},
};

static void hide_hash(char *text)
{
	for (char *p = text; (p = strstr(p, "<secret:")); p++) {
		char *hash = strchr(p + 8, ':');
		size_t rest = hash ? strlen(hash + 1) : 0;
		memcpy(hash ? hash + 1 : p, hash ? "HASH" : "<", hash ? rest < 4 ? rest : 4 : 1);
	}
}

START_TEST(test_mask)
{
	char *text = ff_xstrdup(mask_rows[_i].in);
	size_t n = strlen(text);
	size_t found = ff_mask(text, n);
	ck_assert_uint_eq(found, strstr(mask_rows[_i].out, "<secret") ? 1 : 0);
	ck_assert_uint_eq(strlen(text), n);
	ck_assert_uint_eq(ff_mask(text, n), 0);
	hide_hash(text);
	ck_assert_str_eq(text, mask_rows[_i].out);
	free(text);
}
END_TEST

/* What an intake does with pieces: the open end waits for the next one. */
static void mask_pieces(struct ff_buf *out, struct ff_str s, size_t first, size_t second)
{
	size_t cuts[] = {first, second, s.n};
	struct ff_buf held = {0};
	for (size_t i = 0, at = 0; i < 3; at = cuts[i++]) {
		ff_buf_add(&held, s.p + at, cuts[i] - at);
		size_t n = held.len - (i + 1 < 3 ? ff_mask_open(held.p, held.len) : 0);
		(void)ff_mask(held.p, n);
		ff_buf_add(out, held.p, n);
		ff_buf_consume(&held, n);
	}
	ff_buf_finish(&held);
}

START_TEST(test_mask_pieces)
{
	struct ff_buf want = {0}, text = {0};
	ff_buf_addf(&text, "before %s after\n", mask_rows[_i].in);
	ff_buf_adds(&want, ff_buf_str(&text));
	(void)ff_mask(want.p, want.len);
	static const size_t steps[] = {0, 1, 2, 5, 17, 40};
	for (size_t a = 0; a <= text.len; a++) {
		for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
			size_t b = a + steps[k] < text.len ? a + steps[k] : text.len;
			struct ff_buf got = {0};
			mask_pieces(&got, ff_buf_str(&text), a, b);
			ck_assert_msg(ff_str_eq(ff_buf_str(&got), ff_buf_str(&want)),
				"cut at %zu and %zu: %.*s, not %.*s", a, b, (int)got.len, got.p,
				(int)want.len, want.p);
			ff_buf_finish(&got);
		}
	}
	ff_buf_finish(&want);
	ff_buf_finish(&text);
}
END_TEST

/* A private key's body: lines of `width` of all sorts of base64, and a short one. */
static void add_key(struct ff_buf *out, const char *tag, size_t width, size_t lines, bool ends)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint64_t seed = width;
	ff_buf_addf(out, "%s", ends ? "-----BEGIN RSA PRIVATE KEY-----\n" : "");
	for (size_t i = 0; i <= lines; i++) {
		ff_buf_addz(out, tag);
		for (size_t k = 0; k < (i < lines ? width : 22); k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			ff_buf_addc(out, digits[seed >> 58]);
		}
		ff_buf_addz(out, "\n");
	}
	ff_buf_addf(out, "%s", ends ? "-----END RSA PRIVATE KEY-----\n" : "");
}

static const struct {
	const char *tag;
	size_t width, lines;
	bool ends;
} key_rows[] = {
	{"", 64, 3, false}, {"", 70, 3, false}, {"", 76, 3, false}, {"[rank3]: ", 64, 3, false},
	{"12:00:01 INFO | ", 64, 2, false}, {"", 64, 3, true}, {"[rank3]: ", 48, 3, true},
	{"", 64, 300, true}, /* more than is ever kept back */
};

/* No sixteen characters of the key may be left: they are where `want` has stars or a mark. */
static void check_key(struct ff_str got, struct ff_str raw, const char *how)
{
	size_t same = 0;
	ck_assert_uint_eq(got.n, raw.n);
	for (size_t i = 0; i < raw.n; i++) {
		bool word = isalnum((unsigned char)raw.p[i]) || strchr("+/", raw.p[i]);
		same = word && got.p[i] == raw.p[i] ? same + 1 : 0;
		ck_assert_msg(same < 16, "%s, at %zu: %.16s", how, i, got.p + i - 15);
	}
}

START_TEST(test_mask_key)
{
	struct ff_buf raw = {0}, whole = {0}, lines = {0};
	ff_buf_addz(&raw, "step 1\n");
	add_key(&raw, key_rows[_i].tag, key_rows[_i].width, key_rows[_i].lines, key_rows[_i].ends);
	ff_buf_addz(&raw, "a word of /usr/lib follows\n");
	ff_buf_adds(&whole, ff_buf_str(&raw));
	(void)ff_mask(whole.p, whole.len);
	check_key(ff_buf_str(&whole), ff_buf_str(&raw), "whole");
	ck_assert(ff_str_ends(ff_buf_str(&whole), FF_STR("/usr/lib follows\n")));
	ff_buf_adds(&lines, ff_buf_str(&raw));
	struct ff_mask_lines m = {0};
	for (size_t at = 0; at < lines.len;) {
		size_t n = (size_t)ff_str_chr(ff_buf_str(&lines), '\n', at) - at;
		(void)ff_mask_line(&m, lines.p + at, n);
		at += n + 1;
	}
	ck_assert(ff_str_eq(ff_buf_str(&lines), ff_buf_str(&whole)));
	for (size_t a = 0; a <= raw.len; a += raw.len > 4000 ? 997 : 1) {
		struct ff_buf got = {0};
		mask_pieces(&got, ff_buf_str(&raw), a, a + 70 < raw.len ? a + 70 : raw.len);
		check_key(ff_buf_str(&got), ff_buf_str(&raw), "pieces");
		ff_buf_finish(&got);
	}
	ff_buf_finish(&raw);
	ff_buf_finish(&whole);
	ff_buf_finish(&lines);
}
END_TEST

/* Not a key: a hash, a path, a word that goes on, one of another length. */
START_TEST(test_mask_no_key)
{
	static const char *const rows[] = {
		"sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"/home/Users/ABCDEFGH/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/123",
		"_ZN5torch8autograd6Engine11threadMainERKSt10sharedPtrINS0GraphTaskE",
		"ABCDEFGHabcdefgh0123456789ABCDEFGHabcdefgh0123456789ABCDEFGHabcdefgh",
		"ABCDEFGHabcdefgh0123456789ABCDEFGHabcdefgh0123456789ABCDEFGHabcd end",
	};
	char *text = ff_xstrdup(rows[_i]);
	ck_assert_uint_eq(ff_mask(text, strlen(text)), 0);
	free(text);
}
END_TEST

START_TEST(test_mask_cut)
{
	char cut[] = "loss 1.5 token hf_abcdefgh", whole[] = "loss 1.5 in step=12";
	ff_mask_cut(cut, strlen(cut));
	ck_assert_str_eq(cut, "loss 1.5 *****************");
	ff_mask_cut(whole, strlen(whole));
	ck_assert_str_eq(whole, "loss 1.5 in step=12");
}
END_TEST

/* Text made of fronts without secrets costs its length times a constant: each would take minutes
 * if it were looked at from every place to its end. */
START_TEST(test_mask_hostile)
{
	static const char *const rows[] = {"sk-", "eyJ", "secret:", "Bearer ", "a@", "://a:@", "=",
		"-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "AKIA", "AIza", "hf_", "github_pat_",
		"password: '", "_", "'", "--a ", "--password ", "m[1m", "://a:@@", "\n",
		"ABCDEFGHabcdefgh0123456789ABCDEFGHabcdefgh0123456789ABCDEFGHabcd\n"};
	const size_t n = 1u << 20;
	char *text = ff_xmalloc(n);
	for (size_t i = 0; i < n; i++) {
		text[i] = rows[_i][i % strlen(rows[_i])];
	}
	(void)ff_mask(text, n);
	ck_assert_uint_le(ff_mask_open(text, n), FF_MASK_OPEN_MAX);
	free(text);
}
END_TEST

/* Words that may be cut in the middle of a secret, and words that are none. */
static const struct {
	const char *word;
	bool front;
} front_rows[] = {
	{"", false},
	{"h", true},
	{"hf_", true},
	{"hf_abcdefghijkl", true},
	{"hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", true},
	{"TOKEN_hf_abc", true},
	{"shf_abc", false},
	{"hg", false},
	{"memory", false},
	{"AK", true},
	{"AKIAIOSFODNN7EXAMPLE", true},
	{"x_ASIAIOSF", true},
	{"XAKIAIOSF", false},
	{"gith", true},
	{"sk-abc", true},
	{"Bearer", true},
	{"WANDB_API_KEY", true},
	{"WANDB_API_KEY = '", true},
	{"https://me:hunt", true},
	{"-----BEGIN RSA PRIVATE KEY-----\nMII", true},
	{"step=12", false},
};

START_TEST(test_mask_is_front)
{
	const char *word = front_rows[_i].word;
	ck_assert_msg(ff_mask_is_front(word, strlen(word)) == front_rows[_i].front, "%s", word);
}
END_TEST

/* ---- usec */

START_TEST(test_usec_calendar)
{
	ck_assert_int_eq(ff_usec_days(1970, 1, 1), 0);
	ck_assert_int_eq(ff_usec_days(2000, 3, 1), 11017);
	ck_assert_int_eq(ff_usec_days(1969, 12, 31), -1);
	ck_assert_int_eq(ff_usec_civil(2000, 1, 1, 0, 0, 0, 0), FF_TIME_FIRST);
	ck_assert_int_eq(ff_usec_civil(2100, 1, 1, 0, 0, 0, 0), FF_TIME_LAST);
	int64_t days = ff_usec_days(1599, 12, 31);
	for (int64_t d = days; d < days + 300000; d++) {
		int64_t year;
		int month, day, hour, min, sec, us;
		ff_usec_split(d * 86400 * FF_SECOND + 3723000004, &year, &month, &day, &hour, &min,
			&sec, &us);
		ck_assert_int_eq(ff_usec_days(year, month, day), d);
		ck_assert(hour == 1 && min == 2 && sec == 3 && us == 4);
	}
	ck_assert(ff_usec_usable(FF_TIME_FIRST));
	ck_assert(!ff_usec_usable(FF_TIME_FIRST - 1));
	ck_assert(!ff_usec_usable(FF_TIME_LAST));
	ck_assert(!ff_usec_usable(FF_TIME_NONE));
}
END_TEST

static const struct {
	const char *in;
	const char *out; /* NULL: refused */
} time_rows[] = {
	{"2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z"},
	{"2026-01-01t00:00:00.5z", "2026-01-01T00:00:00.500000Z"},
	{"2026-01-01 00:00:00", "2026-01-01T00:00:00.000000Z"},
	{"2026-01-01T00:00:00.123456789+01:30", "2025-12-31T22:30:00.123456Z"},
	{"2026-01-01T00:00:00,00000001-0800", "2026-01-01T08:00:00.000000Z"},
	{"2024-02-29T23:59:60Z", "2024-03-01T00:00:00.000000Z"},
	{"1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
	{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"},
	{"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},
	{"2023-02-29T00:00:00Z", NULL},
	{"2100-02-29T00:00:00Z", NULL},
	{"2026-13-01T00:00:00Z", NULL},
	{"2026-00-01T00:00:00Z", NULL},
	{"2026-01-00T00:00:00Z", NULL},
	{"2026-01-01T24:00:00Z", NULL},
	{"2026-01-01T00:60:00Z", NULL},
	{"2026-01-01T00:00:61Z", NULL},
	{"2026-01-01T00:00:00.1234567890Z", NULL},
	{"2026-01-01T00:00:00+24:00", NULL},
	{"2026-01-01T00:00:00+01:", NULL},
	{"2026-01-01T00:00:00Z ", NULL},
	{"2026-01-01", NULL},
	{"2026-01-01T00:00", NULL},
	{"26-01-01T00:00:00Z", NULL},
	{"", NULL},
};

START_TEST(test_usec_rfc3339)
{
	ff_usec t = 42;
	bool good = ff_usec_rfc3339(ff_str_z(time_rows[_i].in), &t);
	ck_assert_int_eq(good, time_rows[_i].out != NULL);
	if (!good) {
		ck_assert_int_eq(t, 42);
		return;
	}
	struct ff_buf b = {0};
	ff_usec_render(&b, t);
	ck_assert_str_eq(b.p, time_rows[_i].out);
	ff_buf_finish(&b);
}
END_TEST

START_TEST(test_usec_render)
{
	struct ff_buf b = {0};
	ff_usec t = ff_usec_civil(2026, 11, 30, 2, 14, 7, 481999);
	ff_usec_render_clock(&b, t, 3);
	ff_buf_addc(&b, ' ');
	ff_usec_render_clock(&b, t, 0);
	ff_buf_addc(&b, ' ');
	ff_usec_render_clock(&b, t, 9);
	ff_buf_addc(&b, ' ');
	ff_usec_render(&b, -1);
	ck_assert_str_eq(b.p,
		"02:14:07.481Z 02:14:07Z 02:14:07.481999Z 1969-12-31T23:59:59.999999Z");
	ff_buf_finish(&b);
}
END_TEST

static const struct {
	ff_usec d;
	const char *text;
} span_rows[] = {
	{0, "0 s"},
	{7, "7 us"},
	{999, "999 us"},
	{1000, "1 ms"},
	{350000, "350 ms"},
	{999499, "999 ms"},
	{999500, "1.0 s"},
	{1800000, "1.8 s"},
	{12400000, "12.4 s"},
	{19949999, "19.9 s"},
	{19950000, "20 s"},
	{119499999, "119 s"},
	{119500000, "2 min"},
	{38 * 60 * FF_SECOND, "38 min"},
	{5 * 3600 * FF_SECOND, "5 h"},
	{9 * 86400 * FF_SECOND, "9 d"},
	{-1800000, "-1.8 s"},
	{INT64_MIN, "-106751991 d"},
};

START_TEST(test_usec_span)
{
	struct ff_buf b = {0};
	ff_usec_render_span(&b, span_rows[_i].d);
	ck_assert_str_eq(b.p, span_rows[_i].text);
	ff_buf_finish(&b);
}
END_TEST

/* ---- json writer */

START_TEST(test_jw)
{
	struct ff_buf b = {0};
	struct ff_jw w;
	ff_jw_init(&w, &b);
	ff_jw_open(&w, '{');
	ff_jw_kstrz(&w, "a", "x");
	ff_jw_key(&w, "b");
	ff_jw_open(&w, '[');
	ff_jw_int(&w, -1);
	ff_jw_bool(&w, true);
	ff_jw_null(&w);
	ff_jw_open(&w, '{');
	ff_jw_close(&w, '}');
	ff_jw_open(&w, '[');
	ff_jw_close(&w, ']');
	ff_jw_strz(&w, NULL);
	ff_jw_close(&w, ']');
	ff_jw_kint(&w, "c", INT64_MAX);
	ff_jw_kbool(&w, "d", false);
	ff_jw_knull(&w, "e");
	ff_jw_ktime(&w, "f", 0);
	ff_jw_ktime(&w, "g", FF_TIME_NONE);
	ff_jw_kstr(&w, "h", FF_STR(""));
	ff_jw_close(&w, '}');
	ck_assert_str_eq(b.p,
		"{\"a\":\"x\",\"b\":[-1,true,null,{},[],null],\"c\":9223372036854775807,\"d\":"
		"false,"
		"\"e\":null,\"f\":\"1970-01-01T00:00:00.000000Z\",\"g\":null,\"h\":\"\"}");
	ff_buf_finish(&b);
}
END_TEST

#define BAD "\xef\xbf\xbd"

static const struct {
	struct ff_str in;
	const char *out;
} string_rows[] = {
	{FF_STR(""), ""},
	{FF_STR("plain text"), "plain text"},
	{FF_STR("\"\\/"), "\\\"\\\\/"},
	{FF_STR("\n\t\r\b\f\x1b[0m\x7f"), "\\n\\t\\r\\u0008\\u000c\\u001b[0m\\u007f"},
	{FF_STR("a\0b"), "a\\u0000b"},
	{FF_STR("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5"),
		"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5"},
	{FF_STR("\xff\xfe"), BAD BAD},
	{FF_STR("\x80x"), BAD "x"},
	{FF_STR("\xc3"), BAD},
	{FF_STR("\xc3("), BAD "("},
	{FF_STR("\xe2\x82"), BAD BAD},
	{FF_STR("\xe2\x82z"), BAD BAD "z"},
	{FF_STR("\xf0\x9f\x94"), BAD BAD BAD},
	{FF_STR("\xc0\xaf"), BAD BAD},             /* overlong */
	{FF_STR("\xe0\x80\xaf"), BAD BAD BAD},     /* overlong */
	{FF_STR("\xed\xa0\x80"), BAD BAD BAD},     /* a surrogate */
	{FF_STR("\xed\x9f\xbf"), "\xed\x9f\xbf"},
	{FF_STR("\xf4\x90\x80\x80"), BAD BAD BAD BAD}, /* above U+10FFFF */
	{FF_STR("\xf4\x8f\xbf\xbf"), "\xf4\x8f\xbf\xbf"},
	{FF_STR("\xf5\x80\x80\x80"), BAD BAD BAD BAD},
};

START_TEST(test_jw_str)
{
	struct ff_buf b = {0}, want = {0};
	struct ff_jw w;
	ff_jw_init(&w, &b);
	ff_jw_str(&w, string_rows[_i].in);
	ff_buf_addf(&want, "\"%s\"", string_rows[_i].out);
	ck_assert_str_eq(b.p, want.p);
	ff_buf_finish(&b);
	ff_buf_finish(&want);
}
END_TEST

/* Whatever bytes go in, what comes out parses. */
START_TEST(test_jw_str_is_json)
{
	struct random r = random_init(2);
	for (int round = 0; round < 2000; round++) {
		char text[64];
		size_t n = random_below(&r, sizeof text);
		for (size_t i = 0; i < n; i++) {
			text[i] = (char)(1 + random_below(&r, 255));
		}
		struct ff_buf b = {0};
		struct ff_jw w;
		ff_jw_init(&w, &b);
		ff_jw_str(&w, ff_str_n(text, n));
		struct ff_err err = {{0}};
		struct ff_json *doc = ff_json_parse(ff_buf_str(&b), &err);
		ck_assert_msg(doc != NULL, "seed %lu round %d: %s", r.seed, round, err.text);
		ff_json_destroy(doc);
		ff_buf_finish(&b);
	}
}
END_TEST

/* ---- json reader */

static const struct {
	struct ff_str in;
	const char *out; /* rendered; NULL: refused */
} parse_rows[] = {
	{FF_STR("{}"), "{}"},
	{FF_STR(" [ ] \r\n"), "[]"},
	{FF_STR("{\"a\":[1,2.5,-0,true,false,null,\"x\"],\"A\":{}}"),
		"{\"a\":[1,2.5,0,true,false,null,\"x\"],\"A\":{}}"},
	{FF_STR("\"\\u00e9\\ud83d\\udd25\\n\\/\""), "\"\xc3\xa9\xf0\x9f\x94\xa5\\n/\""},
	{FF_STR("\"\\b\\f\\r\\t\\\\\\\"\""), "\"\\u0008\\u000c\\r\\t\\\\\\\"\""},
	{FF_STR("9007199254740991"), "9007199254740991"},
	{FF_STR("1e3"), "1000"},
	{FF_STR("1e999"), "null"},
	{FF_STR("null"), "null"},
	{FF_STR("\"\xff\""), "\"" BAD "\""},
	{FF_STR(""), NULL},
	{FF_STR("   "), NULL},
	{FF_STR("{"), NULL},
	{FF_STR("["), NULL},
	{FF_STR("[1"), NULL},
	{FF_STR("[1,"), NULL},
	{FF_STR("[1,]"), NULL},
	{FF_STR("[1 2]"), NULL},
	{FF_STR("[1}"), NULL},
	{FF_STR("{\"a\"}"), NULL},
	{FF_STR("{\"a\":}"), NULL},
	{FF_STR("{\"a\":1,}"), NULL},
	{FF_STR("{a:1}"), NULL},
	{FF_STR("{\"a\":1}x"), NULL},
	{FF_STR("{\"a\":1}\0"), NULL},
	{FF_STR("{\"a\":1} {}"), NULL},
	{FF_STR("]"), NULL},
	{FF_STR("\"a"), NULL},
	{FF_STR("\"a\\"), NULL},
	{FF_STR("\"a\nb\""), NULL},
	{FF_STR("\"a\0b\""), NULL},
	{FF_STR("\"\\u0000\""), NULL},
	{FF_STR("\"\\u12\""), NULL},
	{FF_STR("\"\\x41\""), NULL},
	{FF_STR("\"\\ud800\""), NULL},
	{FF_STR("\"\\ud800\\u0041\""), NULL},
	{FF_STR("\"\\udc00\""), NULL},
	{FF_STR("01"), NULL},
	{FF_STR("-"), NULL},
	{FF_STR("+1"), NULL},
	{FF_STR("1."), NULL},
	{FF_STR(".5"), NULL},
	{FF_STR("1e"), NULL},
	{FF_STR("NaN"), NULL},
	{FF_STR("tru"), NULL},
	{FF_STR("truex"), NULL},
	{FF_STR("\xef\xbb\xbf{}"), NULL},
	{FF_STR("11111111111111111111111111111111111111111111111111111111111111111"), NULL},
};

START_TEST(test_json_parse)
{
	/* Memory of exactly this length: what reads over its end is seen by the sanitizers. */
	struct ff_str in = parse_rows[_i].in;
	char *text = ff_xmalloc(in.n);
	memcpy(text, in.p, in.n);
	struct ff_err err = {{0}};
	struct ff_json *doc = ff_json_parse((struct ff_str){text, in.n}, &err);
	ck_assert_int_eq(doc != NULL, parse_rows[_i].out != NULL);
	ck_assert_int_eq(err.text[0] != '\0', !doc);
	if (doc) {
		struct ff_buf b = {0};
		ff_json_render(ff_json_root(doc), &b);
		ck_assert_str_eq(b.p, parse_rows[_i].out);
		ff_buf_finish(&b);
	}
	ff_json_destroy(doc);
	free(text);
}
END_TEST

/* What quotes logs may hold NUL: it is kept, and nothing else is let through. */
static const struct {
	struct ff_str in;
	const char *out; /* rendered; NULL: refused */
	struct ff_str text; /* of a string */
} nul_rows[] = {
	{FF_STR("\"a\\u0000b\""), "\"a\\u0000b\"", FF_STR("a\0b")},
	{FF_STR("\"\\u0000\""), "\"\\u0000\"", FF_STR("\0")},
	{FF_STR("\"\\u0000\\u0000\\\\\""), "\"\\u0000\\u0000\\\\\"", FF_STR("\0\0\\")},
	{FF_STR("\"\\\\u0000\""), "\"\\\\u0000\"", FF_STR("\\u0000")},
	{FF_STR("\"\\\\\\u0000\""), "\"\\\\\\u0000\"", FF_STR("\\\0")},
	{FF_STR("\"\\u00000\\u0001\""), "\"\\u00000\\u0001\"", FF_STR("\0" "0\x01")},
	{FF_STR("\"none\""), "\"none\"", FF_STR("none")},
	{FF_STR("{\"a\":[\"\\u0000\",{\"b\":\"x\\u0000\"}]}"),
		"{\"a\":[\"\\u0000\",{\"b\":\"x\\u0000\"}]}", FF_STR("")},
	{FF_STR("\"\\u000\""), NULL, FF_STR("")},
	{FF_STR("\"\\u0000"), NULL, FF_STR("")},
	{FF_STR("\"a\0b\""), NULL, FF_STR("")},
};

START_TEST(test_json_nul)
{
	struct ff_str in = nul_rows[_i].in;
	struct ff_buf b = {0}, text = {0};
	char *exact = ff_xmemdup(in.p, in.n);
	struct ff_json *doc = ff_json_parse_text(ff_str_n(exact, in.n), NULL);
	ck_assert_int_eq(doc != NULL, nul_rows[_i].out != NULL);
	if (doc) {
		ff_json_render(ff_json_root(doc), &b);
		ck_assert_str_eq(b.p, nul_rows[_i].out);
	}
	if (doc && ff_json_string(ff_json_root(doc))) {
		ff_json_add_text(&text, ff_json_string(ff_json_root(doc)));
		ck_assert(ff_str_eq(ff_buf_str(&text), nul_rows[_i].text));
	}
	ff_json_destroy(doc);
	ff_buf_finish(&b);
	ff_buf_finish(&text);
	free(exact);
}
END_TEST

START_TEST(test_json_depth)
{
	for (size_t depth = FF_JSON_DEPTH - 1; depth <= FF_JSON_DEPTH + 1; depth++) {
		struct ff_buf b = {0};
		for (size_t i = 0; i < depth; i++) {
			ff_buf_addz(&b, i & 1 ? "{\"a\":" : "[");
		}
		ff_buf_addz(&b, "1");
		for (size_t i = depth; i-- > 0;) {
			ff_buf_addc(&b, i & 1 ? '}' : ']');
		}
		struct ff_err err = {{0}};
		struct ff_json *doc = ff_json_parse(ff_buf_str(&b), &err);
		ck_assert_int_eq(doc != NULL, depth <= FF_JSON_DEPTH);
		if (doc) {
			struct ff_buf out = {0};
			ff_json_render(ff_json_root(doc), &out);
			ck_assert_str_eq(out.p, b.p);
			ff_buf_finish(&out);
		} else {
			ck_assert_str_eq(err.text, "line 1, column 193: nested too deeply");
		}
		ff_json_destroy(doc);
		ff_buf_finish(&b);
	}
	struct ff_buf deep = {0};
	for (int i = 0; i < 1000000; i++) {
		ff_buf_addc(&deep, '[');
	}
	ck_assert_ptr_null(ff_json_parse(ff_buf_str(&deep), NULL));
	ff_buf_finish(&deep);
}
END_TEST

START_TEST(test_json_error_place)
{
	struct ff_err err = {{0}};
	ck_assert_ptr_null(ff_json_parse(FF_STR("{\n \"a\": 1,\n \"b\" 2}"), &err));
	ck_assert_str_eq(err.text, "line 3, column 6: a colon is missing");
}
END_TEST

START_TEST(test_json_get)
{
	struct ff_json *doc = ff_json_parse(
		FF_STR("{\"s\":\"x\",\"i\":-7,\"f\":1.5,\"big\":9007199254740992,\"t\":true,"
		       "\"n\":null,\"a\":[1,2],\"A\":3,\"inf\":1e999}"),
		NULL);
	const struct ff_json_node *root = ff_json_root(doc);
	int64_t i = 0;
	double d = 0;
	bool b = false;
	ck_assert(ff_json_is_object(root));
	ck_assert_str_eq(ff_json_string(ff_json_get(root, "s")), "x");
	ck_assert_ptr_null(ff_json_string(ff_json_get(root, "i")));
	ck_assert(ff_json_int(ff_json_get(root, "i"), &i) && i == -7);
	ck_assert(!ff_json_int(ff_json_get(root, "f"), &i));
	ck_assert(!ff_json_int(ff_json_get(root, "big"), &i));
	ck_assert(!ff_json_int(ff_json_get(root, "s"), &i));
	ck_assert(!ff_json_int(ff_json_get(root, "none"), &i));
	ck_assert(ff_json_number(ff_json_get(root, "f"), &d) && fabs(d - 1.5) < 1e-9);
	ck_assert(!ff_json_number(ff_json_get(root, "inf"), &d));
	ck_assert(ff_json_bool(ff_json_get(root, "t"), &b) && b);
	ck_assert(!ff_json_bool(ff_json_get(root, "i"), &b));
	ck_assert(ff_json_is_null(ff_json_get(root, "n")));
	ck_assert(ff_json_is_null(NULL));
	ck_assert(!ff_json_is_null(root));
	const struct ff_json_node *a = ff_json_get(root, "a");
	ck_assert(ff_json_is_array(a));
	ck_assert_ptr_null(ff_json_get(a, "x"));
	const struct ff_json_node *first = ff_json_first(a);
	ck_assert(ff_json_int(first, &i) && i == 1);
	ck_assert(ff_json_int(ff_json_next(first), &i) && i == 2);
	ck_assert_ptr_null(ff_json_next(ff_json_next(first)));
	ck_assert_str_eq(ff_json_key(ff_json_next(a)), "A");
	ck_assert_ptr_null(ff_json_first(NULL));
	ff_json_destroy(doc);
	ff_json_destroy(NULL);
}
END_TEST

static int parses(struct ff_str text)
{
	struct ff_json *doc = ff_json_parse(text, NULL);
	ff_json_destroy(doc);
	return doc != NULL;
}

/* Damaged documents are refused or read, but never past their end. */
START_TEST(test_json_damage)
{
	static const char good[] = "{\"event\":\"exit\",\"rank\":3,\"text\":"
				   "\"a\\u00e9\\ud83d\\udd25\",\"x\":[1.5e-3,{}]}";
	struct random r = random_init(3);
	for (int round = 0; round < 20000; round++) {
		size_t n = random_below(&r, sizeof good);
		char *text = ff_xmalloc(n);
		memcpy(text, good, n);
		for (uint32_t k = random_below(&r, 3); n && k > 0; k--) {
			text[random_below(&r, (uint32_t)n)] = (char)random_below(&r, 256);
		}
		(void)parses((struct ff_str){text, n});
		free(text);
	}
	ck_assert(parses(FF_STR(good)));
}
END_TEST

#define LOOP(tc, fn, rows) tcase_add_loop_test(tc, fn, 0, (int)(sizeof rows / sizeof rows[0]))

int main(void)
{
	Suite *s = suite_create("base");
	TCase *tc = tcase_create("base");
	tcase_add_test(tc, test_mem);
	tcase_add_test(tc, test_arr);
	tcase_add_test(tc, test_str_compare);
	tcase_add_test(tc, test_str_find);
	LOOP(tc, test_str_int, int_rows);
	LOOP(tc, test_sha256, sha256_rows);
	tcase_add_test(tc, test_str_digits);
	tcase_add_test(tc, test_buf);
	tcase_add_test(tc, test_arena);
	tcase_add_test(tc, test_err);
	tcase_add_test(tc, test_err_is_cut_between_characters);
	tcase_add_test(tc, test_map);
	tcase_add_test(tc, test_map_keys);
	tcase_add_test(tc, test_map_hostile_keys);
	LOOP(tc, test_mask, mask_rows);
	LOOP(tc, test_mask_pieces, mask_rows);
	LOOP(tc, test_mask_key, key_rows);
	tcase_add_loop_test(tc, test_mask_no_key, 0, 5);
	tcase_add_test(tc, test_mask_cut);
	tcase_add_loop_test(tc, test_mask_hostile, 0, 22);
	LOOP(tc, test_mask_is_front, front_rows);
	tcase_add_test(tc, test_usec_calendar);
	LOOP(tc, test_usec_rfc3339, time_rows);
	tcase_add_test(tc, test_usec_render);
	LOOP(tc, test_usec_span, span_rows);
	tcase_add_test(tc, test_jw);
	LOOP(tc, test_jw_str, string_rows);
	tcase_add_test(tc, test_jw_str_is_json);
	LOOP(tc, test_json_parse, parse_rows);
	LOOP(tc, test_json_nul, nul_rows);
	tcase_add_test(tc, test_json_depth);
	tcase_add_test(tc, test_json_error_place);
	tcase_add_test(tc, test_json_get);
	tcase_add_test(tc, test_json_damage);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
