import type { Schemas } from "../../api/schema.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { Link } from "../Link.tsx"

/** The owner of something, for the operator. A deleted user has no page. */
export const OwnerLink = ({ of: { email, id } }: { readonly of: Schemas["Owner"] }) =>
  email === null ? (
    <span class="faint" title={id}>
      {operatorTexts.all.deleted}
    </span>
  ) : (
    <Link to={`/users/${id}`} class="clip narrow">
      {email}
    </Link>
  )
