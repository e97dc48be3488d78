import { readModels } from "../../api/lists.ts"
import { useResource } from "../../api/resource.ts"
import { Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { Link } from "../../components/Link.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty, Loaded } from "../../components/States.tsx"
import { modelPath } from "../../format/paths.ts"
import { texts } from "../../texts/en.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { modelTexts } from "../../texts/en/models.ts"
import { Availability } from "./Availability.tsx"
import { kindOf, kinds, Price } from "./price.tsx"
import type { AnyModel } from "./price.tsx"

const words = modelTexts

const filtersWith = (models: ReadonlyArray<AnyModel>): ReadonlyArray<Filter> => [
  {
    name: "kind",
    label: words.kind,
    kind: "segments",
    options: kinds.map((it) => [it, words.kinds[it]])
  },
  { name: "q", label: words.search, kind: "search" },
  {
    name: "vendor",
    label: filterTexts.vendor,
    kind: "choice",
    options: [...new Set(models.map(({ vendor }) => vendor))].sort().map((it) => [it, it])
  }
]

const idOf = ({ model, path, type, vendor }: AnyModel): string =>
  [type, vendor, model, path].join(" ")

const columns: ReadonlyArray<Column<AnyModel>> = [
  {
    title: filterTexts.model,
    isPlain: true,
    cell: (model) => (
      <Link to={modelPath(model)}>
        {model.vendor}/{model.model}
      </Link>
    )
  },
  { title: words.kind, isPlain: true, cell: (model) => words.kinds[kindOf(model)] },
  { title: words.price, isPlain: true, cell: (model) => <Price of={model} /> },
  { title: words.availability, isPlain: true, cell: (model) => <Availability of={model} /> },
  {
    title: texts.actions,
    isEnd: true,
    cell: ({ model, vendor }) => (
      <Link to="/playground" query={{ model: `${vendor}/${model}` }} class="button small">
        {words.tryIt}
        <span class="hidden"> {model}</span>
      </Link>
    )
  }
]

/** `/models`: the models on sale and their prices. */
export default function ModelsPage() {
  const models = useResource("models", readModels)
  const { kind, q, vendor } = filterValues(["kind", "q", "vendor"])
  const text = q?.toLowerCase() ?? ""
  const matches = (it: AnyModel): boolean =>
    `${it.vendor}/${it.model}`.toLowerCase().includes(text) &&
    (kind === undefined || kindOf(it) === kind) &&
    (vendor === undefined || it.vendor === vendor)
  return (
    <>
      <PageHeader title={words.title} about={words.about} />
      <Filters filters={filtersWith(models.data ?? [])} />
      <Loaded of={models}>
        {(all) => (
          <Table
            caption={words.caption}
            columns={columns}
            rows={all.filter(matches)}
            idOf={idOf}
            empty={<Empty title={words.noMatch} />}
          />
        )}
      </Loaded>
    </>
  )
}
