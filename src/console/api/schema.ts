import type { Operations } from "../../client/schema.ts"

export { pathsOfUser } from "../../client/schema.ts"
export type { Schemas } from "../../client/schema.ts"

type Route = keyof Operations

export type Method = Route extends `${infer M} ${string}` ? M : never
/** The paths that have the method. */
export type PathOf<M extends Method> = Route extends infer R
  ? R extends `${M} ${infer Path}`
    ? Path
    : never
  : never

type OperationOf<M extends Method, P extends PathOf<M>> = Operations[`${M} ${P}` & Route]

type Part<Operation, Name extends string> = Pick<Operation, Extract<keyof Operation, Name>>
type Params<Operation> = Part<Operation, "path" | "query"> & {
  readonly header?: { readonly "Idempotency-Key"?: string }
}

/** What a request has. */
export type Init<M extends Method, P extends PathOf<M>> = Part<OperationOf<M, P>, "body"> &
  (Partial<Params<OperationOf<M, P>>> extends Params<OperationOf<M, P>>
    ? { readonly params?: Params<OperationOf<M, P>> }
    : { readonly params: Params<OperationOf<M, P>> })

/** Excludes lists as files, which the console only links to. */
export type ResponseOf<M extends Method, P extends PathOf<M>> = Exclude<
  OperationOf<M, P>["response"],
  string
>
