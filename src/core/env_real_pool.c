/* core/env_real_pool.c - threads for what blocks.
 *
 * Threads are started when there are more jobs than idle threads, up to the limit, and stay. An idle thread that was
 * called is not awake yet when the next job comes, so "one is idle" would not do: the second job would wait for the first,
 * which may wait for the second (a notification to the kernel for a lock that another one's request holds). A finished
 * job goes to the `done` list;
 * the loop is woken for the first of them only and takes the whole list at once. */
#include "core/env_real_internal.h"
#include "core/mem.h"

#include <pthread.h>
#include <signal.h>

#define POOL_MAX_THREADS  256
#define POOL_THREAD_STACK (512 * 1024)

struct real_pool {
    struct env_real *env;
    uv_async_t async;
    bool is_async_open;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t has_work;
    struct list queued, done;
    unsigned limit, started;
    unsigned idle;  /* asleep, or called and not awake yet: each takes a job before it sleeps again */
    unsigned count; /* of `queued` */
    bool is_ending;
    pthread_t threads[POOL_MAX_THREADS];
};

static void *pool_thread(void *arg)
{
    struct real_pool *p = arg;

    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (list_empty(&p->queued) && !p->is_ending) {
            p->idle++;
            pthread_cond_wait(&p->has_work, &p->lock);
            p->idle--;
        }
        if (list_empty(&p->queued))
            break;
        struct pool_job *job = list_entry(p->queued.next, struct pool_job, node);
        list_del(&job->node);
        p->count--;
        pthread_mutex_unlock(&p->lock);
        job->fn(job->arg);
        pthread_mutex_lock(&p->lock);
        bool is_first = list_empty(&p->done);
        list_add_tail(&p->done, &job->node);
        if (is_first)
            uv_async_send(&p->async);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void finish_jobs(struct real_pool *p)
{
    struct list done;

    list_init(&done);
    pthread_mutex_lock(&p->lock);
    list_splice_tail(&done, &p->done);
    pthread_mutex_unlock(&p->lock);
    while (!list_empty(&done)) {
        struct pool_job *job = list_entry(done.next, struct pool_job, node);
        list_del(&job->node);
        job->done(job);
    }
}

static void on_async(uv_async_t *handle)
{
    finish_jobs(handle->data);
}

/* Signals are for the loop thread. The lock is held. */
static int start_thread(struct real_pool *p)
{
    pthread_attr_t attr;
    sigset_t all, before;

    if (pthread_attr_init(&attr) != 0)
        return -ENOMEM;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_setstacksize(&attr, POOL_THREAD_STACK);
    int err = pthread_create(&p->threads[p->started], &attr, pool_thread, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (err == 0)
        p->started++;
    return -err;
}

void real_pool_submit(struct env *env, struct pool_job *job)
{
    struct real_pool *p = real(env)->pool;

    list_init(&job->node);
    pthread_mutex_lock(&p->lock);
    list_add_tail(&p->queued, &job->node);
    p->count++;
    bool is_one_idle = p->count <= p->idle;
    if (!is_one_idle && p->started < p->limit)
        (void)start_thread(p); /* there is at least one, which will get to it */
    pthread_mutex_unlock(&p->lock);
    if (is_one_idle) /* after the unlock: it would only run into the lock */
        pthread_cond_signal(&p->has_work);
}

static void free_pool(uv_handle_t *handle)
{
    struct real_pool *p = handle->data;

    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->has_work);
    mem_free(p);
}

int real_pool_new(struct env_real *r, unsigned threads, struct real_pool **ret_pool)
{
    struct real_pool *p = NEW(struct real_pool);

    if (!p)
        return -ENOMEM;
    p->env = r;
    p->limit = MIN(threads, (unsigned)POOL_MAX_THREADS);
    list_init(&p->queued);
    list_init(&p->done);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->has_work, NULL);
    int err = uv_async_init(&r->loop, &p->async, on_async);
    p->async.data = p;
    if (err < 0) {
        free_pool((uv_handle_t *)&p->async);
        return err;
    }
    pthread_mutex_lock(&p->lock);
    err = start_thread(p);
    pthread_mutex_unlock(&p->lock);
    if (err < 0) {
        uv_close((uv_handle_t *)&p->async, free_pool);
        return err;
    }
    *ret_pool = p;
    return 0;
}

void real_pool_free(struct real_pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->is_ending = true;
    pthread_cond_broadcast(&p->has_work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->started; i++)
        pthread_join(p->threads[i], NULL);
    finish_jobs(p);
    uv_close((uv_handle_t *)&p->async, free_pool);
}
