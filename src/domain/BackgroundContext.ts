import { Context } from "effect"

/**
 * What is left of a context for background fibers, whose effects need no service: clock, loggers, tracer and
 * other references of Effect. Each finalizer and each provided service copies the context of its fiber, and
 * that of the gateway has up to 100 entries, 13 of them references: a third of the garbage of a task's end.
 * References of this project are read where a layer is built.
 */
export const withoutServices = <R>(context: Context.Context<R>): Context.Context<R> =>
  Context.makeUnsafe(new Map([...context.mapUnsafe].filter(([key]) => !key.startsWith("gateway/"))))
