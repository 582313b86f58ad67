variable "n" { type = number }
variable "tag" { type = string }

resource "terraform_data" "inner" {
  count = var.n
  input = { i = count.index, tag = var.tag }
}

resource "terraform_data" "keyed" {
  for_each = toset(["0", "007", "a.b[\"c\"]"])
  input    = "${each.key}/${var.tag}"
}

output "ids" { value = terraform_data.inner[*].id }
