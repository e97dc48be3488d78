import { basePath } from "../../api/address.ts"
import { viewedUser } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"

interface Props {
  /** An API list that returns a file with `format=csv`. */
  readonly path: string
  readonly query: Readonly<Record<string, string | undefined>>
}

/** Downloads all rows of a search. The browser sends the session cookie as with any link. */
export const CsvLink = ({ path, query }: Props) => {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries({ user_id: viewedUser(), ...query, format: "csv" })) {
    if (value !== undefined) params.set(name, value)
  }
  return (
    <a class="button" href={`${basePath}${path}?${params}`} download>
      {texts.csv}
    </a>
  )
}
