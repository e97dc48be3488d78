import type { Operations } from "../../client/schema.ts"

export { pathsOfUser } from "../../client/schema.ts"
export type { Page, Schemas } from "../../client/schema.ts"

type Route = keyof Operations

export type Method = Route extends `${infer M} ${string}` ? M : never
/** The paths that have the method. */
export type PathOf<M extends Method> = Route extends infer R
  ? R extends `${M} ${infer Path}`
    ? Path
    : never
  : never

type OperationOf<M extends Method, P extends PathOf<M>> = Operations[`${M} ${P}` & Route]

type Given = "body" | "path" | "query"

/** What a request has. */
export type Init<M extends Method, P extends PathOf<M>> = Pick<
  OperationOf<M, P>,
  Extract<keyof OperationOf<M, P>, Given>
> & { readonly header?: { readonly "Idempotency-Key"?: string } }

/** The body of a request that has one. */
export type BodyOf<M extends Method, P extends PathOf<M>> =
  OperationOf<M, P> extends { readonly body: infer Body } ? Body : never

/** The filters of a list. */
export type SearchOf<P extends PathOf<"GET">> =
  OperationOf<"GET", P> extends { readonly query?: infer Query }
    ? Omit<NonNullable<Query>, "cursor" | "limit" | "user_id">
    : never

/** Excludes lists as files, which the console only links to. */
export type ResponseOf<M extends Method, P extends PathOf<M>> = Exclude<
  OperationOf<M, P>["response"],
  string
>
