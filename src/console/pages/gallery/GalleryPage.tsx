import { isShown } from "../../api/address.ts"
import { api } from "../../api/client.ts"
import { useFresh } from "../../api/fresh.ts"
import { pageAfter, useModelNames } from "../../api/lists.ts"
import { useLive } from "../../api/live.ts"
import { usePages } from "../../api/pages.ts"
import type { Page } from "../../api/pages.ts"
import type { Schemas } from "../../api/schema.ts"
import { Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { Link } from "../../components/Link.tsx"
import { PagedView } from "../../components/list/PagedView.tsx"
import { TaskGallery } from "../../components/list/TaskGallery.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty } from "../../components/States.tsx"
import { viewedUser } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { galleryTexts } from "../../texts/en/gallery.ts"
import { taskListTexts } from "../../texts/en/tasks.ts"

type Task = Schemas["TaskListItem"]

const words = galleryTexts
const pageSize = 48
const kinds = ["images", "videos"] as const

/** How long results are stored. */
const keptMillis = 24 * 60 * 60_000

const useFilters = (): ReadonlyArray<Filter> => {
  const { models } = useModelNames()
  return [
    {
      name: "result_kind",
      label: words.kind,
      kind: "segments",
      options: kinds.map((it) => [it, words[it]])
    },
    { name: "q", label: taskListTexts.search, kind: "search" },
    { name: "model", label: filterTexts.model, kind: "choice", options: models }
  ]
}

/** Only tasks whose result is still stored. */
const withPreview = ({ data, next_cursor }: Page<Task>): Page<Task> => ({
  data: data.filter(({ preview }) => preview !== undefined && isShown(preview.url)),
  next_cursor
})

/** `/gallery`: the stored results of the user's tasks, as pictures. */
export default function GalleryPage() {
  const user = viewedUser() ?? ""
  const { result_kind: chosen } = filterValues(["result_kind"])
  const kind = kinds.find((it) => it === chosen)
  const search = {
    ...filterValues(["q", "model"]),
    ...(kind === undefined ? {} : { result_kind: kind })
  }
  const key = JSON.stringify([user, search])
  const pages = usePages<Task>(
    "gallery",
    key,
    async (cursor) => {
      // A result is stored from the end of its task, which may have run for a while
      const since = new Date(Date.now() - 2 * keptMillis).toISOString()
      const query = {
        ...search,
        status: "completed" as const,
        since,
        ...pageAfter(pageSize, cursor)
      }
      return withPreview(await api.GET("/manage/v1/tasks", { query }))
    },
    ({ id }) => id
  )
  const fresh = useFresh(key, pages.reload)
  useLive((event) => {
    if (event.type !== "task" || event.data.preview === undefined || pages.isLoading) return
    const isNewer = event.data.created_at > (pages.rows[0]?.created_at ?? "")
    if (!pages.update(event.data) && isNewer && matches(event.data, search)) {
      fresh.add(event.data.id)
    }
  })
  return (
    <>
      <PageHeader title={texts.pages.gallery} about={words.about}>
        <button type="button" onClick={pages.reload}>
          {texts.refresh}
        </button>
      </PageHeader>
      <Filters filters={useFilters()} />
      <PagedView
        pages={pages}
        fresh={fresh.count}
        onFresh={fresh.show}
        empty={
          Object.keys(search).length > 0 ? (
            <Empty title={words.noMatch} />
          ) : (
            <Empty title={words.empty}>
              <p>{words.emptyDetail}</p>
              <p>
                <Link to="/playground" query={{ kind: "images" }} class="button">
                  {words.create}
                </Link>
              </p>
            </Empty>
          )
        }
      >
        <TaskGallery tasks={pages.rows} />
      </PagedView>
    </>
  )
}

/** The filters that can be checked on a new result without the gateway. */
const matches = (
  { model, preview }: Task,
  search: { readonly q?: string; readonly model?: string; readonly result_kind?: string }
): boolean =>
  search.q === undefined &&
  (search.model === undefined || search.model === model) &&
  (search.result_kind === undefined || search.result_kind === preview?.kind)
