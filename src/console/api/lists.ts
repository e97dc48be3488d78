import { api } from "./client.ts"
import type { Page } from "./pages.ts"
import { useResource } from "./resource.ts"
import type { Schemas } from "./schema.ts"

/** Reads all pages of a short list, such as keys or models. */
export const readAll = async <T>(
  load: (cursor: string | undefined) => Promise<Page<T>>,
  cursor?: string
): Promise<ReadonlyArray<T>> => {
  const page = await load(cursor)
  return page.next_cursor === null
    ? page.data
    : [...page.data, ...(await readAll(load, page.next_cursor))]
}

export const pageAfter = (limit: number, cursor: string | undefined) => ({
  limit,
  ...(cursor === undefined ? {} : { cursor })
})

/** Read once and shared by all pages, because the catalog seldom changes. */
let models: Promise<ReadonlyArray<Schemas["Model"] | Schemas["TokenModel"]>> | undefined

export const readModels = () => {
  models ??= readAll<Schemas["Model"] | Schemas["TokenModel"]>((cursor) =>
    api.GET("/manage/v1/models", { query: pageAfter(100, cursor) })
  ).catch((cause: unknown) => {
    models = undefined
    throw cause
  })
  return models
}

type Options = ReadonlyArray<readonly [value: string, label: string]>

/** The models and vendors to choose from. */
export const useModelNames = (): { readonly models: Options; readonly vendors: Options } => {
  const { data = [] } = useResource("model names", readModels)
  const optionsOf = (names: ReadonlyArray<string>): Options =>
    [...new Set(names)].sort().map((it) => [it, it])
  return {
    models: optionsOf(data.map(({ model }) => model)),
    vendors: optionsOf(data.map(({ vendor }) => vendor))
  }
}

/** The user's keys by id, for showing their names. Empty when all users are shown. */
export const useKeys = (user: string | undefined): ReadonlyMap<string, Schemas["ApiKey"]> => {
  const keys = useResource(`keys ${user}`, async () =>
    user === undefined
      ? []
      : await readAll((cursor) => api.GET("/manage/v1/api-keys", { query: pageAfter(100, cursor) }))
  )
  return new Map(keys.data?.map((key) => [key.id, key]))
}
