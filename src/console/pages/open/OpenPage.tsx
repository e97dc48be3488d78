import { useEffect } from "preact/hooks"
import { useResource } from "../../api/resource.ts"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty, Loaded } from "../../components/States.tsx"
import { hrefOf, navigate } from "../../router/location.ts"
import type { PageProps } from "../../routes.ts"
import { texts } from "../../texts/en.ts"
import { placeOf } from "./placeOf.ts"

const words = texts.open

/** `/open/:id`: leads to the page of what has this id or trace id, whatever it is. */
export default function OpenPage({ params: { id = "" } }: PageProps) {
  const place = useResource(id, async () => (await placeOf(id)) ?? null)
  const found = place.data
  useEffect(() => {
    if (found != null) navigate(hrefOf(found.path, found.query), true)
  }, [found])
  return (
    <>
      <PageHeader title={words.title} />
      <Loaded of={place}>{(it) => it === null && <Empty title={words.nothing(id)} />}</Loaded>
    </>
  )
}
