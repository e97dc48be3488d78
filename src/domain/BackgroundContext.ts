import { Context } from "effect"

/**
 * Reduces a context to Effect's references (clock, loggers, tracer and others), for background fibers whose effects
 * need no service. Each finalizer and each provided service copies the context of its fiber. The gateway's context has
 * up to 100 entries, 13 of them references, and the copies were a third of the garbage of a task's end. This project's
 * own references are read where a layer is built.
 */
export const withoutServices = <R>(context: Context.Context<R>): Context.Context<R> =>
  Context.makeUnsafe(new Map([...context.mapUnsafe].filter(([key]) => !key.startsWith("gateway/"))))
