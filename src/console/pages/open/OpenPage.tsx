import { useEffect } from "preact/hooks"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { isOverAll } from "../../api/session.ts"
import { Link } from "../../components/Link.tsx"
import { OwnerLink } from "../../components/list/OwnerLink.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty, Loaded } from "../../components/States.tsx"
import { Ago } from "../../components/Values.tsx"
import { hrefOf, navigate } from "../../router/location.ts"
import type { PageProps } from "../../routes.ts"
import { openTexts } from "../../texts/en/open.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { findOverAll, placeOf, placeOfThing } from "./placeOf.ts"
import type { Place } from "./placeOf.ts"

const words = openTexts

/** `/open/:id`: redirects to the page of whatever has this id or trace id. */
export default function OpenPage({ params: { id = "" } }: PageProps) {
  return isOverAll() ? <OpenOverAll id={id} /> : <OpenOwn id={id} />
}

const useGoTo = (place: Place | null | undefined) =>
  useEffect(() => {
    if (place != null) navigate(hrefOf(place.path, place.query), true)
  }, [place])

const OpenOwn = ({ id }: { readonly id: string }) => {
  const place = useResource(id, async () => (await placeOf(id)) ?? null)
  useGoTo(place.data)
  return (
    <>
      <PageHeader />
      <Loaded of={place}>{(it) => it === null && <Empty title={words.nothing(id)} />}</Loaded>
    </>
  )
}

type Thing = Schemas["FoundThing"]

const columns: ReadonlyArray<Column<Thing>> = [
  {
    title: words.found,
    isPlain: true,
    cell: (thing) => {
      const { path, query } = placeOfThing(thing)
      return (
        <Link to={path} {...(query === undefined ? {} : { query })}>
          {words.types[thing.type]} <code>{thing.id}</code>
        </Link>
      )
    }
  },
  { title: operatorTexts.users.user, cell: ({ user }) => <OwnerLink of={user} /> },
  { title: operatorTexts.users.created, cell: ({ created_at: at }) => <Ago at={at} /> }
]

/** A single match opens by itself; of several, such as those of a trace, the user chooses one. */
const OpenOverAll = ({ id }: { readonly id: string }) => {
  const found = useResource(`all ${id}`, async () => {
    const things = await findOverAll(id)
    const [one, ...more] = things
    return { things, place: one === undefined || more.length > 0 ? null : placeOfThing(one) }
  })
  useGoTo(found.data?.place)
  return (
    <>
      <PageHeader />
      <Loaded of={found}>
        {({ place, things }) =>
          place === null && (
            <Table
              caption={words.results}
              columns={columns}
              rows={things}
              idOf={(it) => it.id}
              empty={<Empty title={words.nothingAtAll(id)} />}
            />
          )
        }
      </Loaded>
    </>
  )
}
