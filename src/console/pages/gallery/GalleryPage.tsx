import { isShown } from "../../api/address.ts"
import { api } from "../../api/client.ts"
import { useModelNames } from "../../api/lists.ts"
import { useLive } from "../../api/live.ts"
import { usePages } from "../../api/pages.ts"
import type { Page, Schemas, SearchOf } from "../../api/schema.ts"
import type { PageQuery } from "../../api/searchOn.ts"
import { choiceIn, Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { Link } from "../../components/Link.tsx"
import { PagedView } from "../../components/list/PagedView.tsx"
import { TaskGallery } from "../../components/list/TaskGallery.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
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
  const search = { ...filterValues(["q", "model"]), ...choiceIn("result_kind", kinds) }
  const load = async (page: PageQuery) => {
    // A result is stored from the end of its task, which may have run for a while
    const since = new Date(Date.now() - 2 * keptMillis).toISOString()
    const query = { ...search, ...page, status: "completed" as const, since }
    return withPreview(await api.GET("/manage/v1/tasks", { query }))
  }
  const pages = usePages("gallery", search, load, pageSize)
  useLive((event) => {
    if (event.type === "poll") pages.refresh()
    if (event.type !== "task" || event.data.preview === undefined) return
    pages.take(event.data, matches(event.data, search))
  })
  return (
    <>
      <PageHeader about={words.about}>
        <button type="button" onClick={pages.reload}>
          {texts.refresh}
        </button>
      </PageHeader>
      <Filters filters={useFilters()} />
      <PagedView
        words={words}
        search={search}
        pages={pages}
        first={
          <p>
            <Link to="/playground" query={{ kind: "images" }} class="button">
              {words.create}
            </Link>
          </p>
        }
      >
        <TaskGallery tasks={pages.rows} />
      </PagedView>
    </>
  )
}

/** The filters that can be checked on a new result without the gateway. */
const matches = ({ model, preview }: Task, search: SearchOf<"/manage/v1/tasks">): boolean =>
  search.q === undefined &&
  (search.model === undefined || search.model === model) &&
  (search.result_kind === undefined || search.result_kind === preview?.kind)
