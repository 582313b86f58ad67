variable "text" { type = string }

resource "terraform_data" "a" { input = var.text }

resource "terraform_data" "e" {
  for_each = toset(["x", "y \"z\""])
  input    = each.key
}

output "s" {
  value     = var.text
  sensitive = true
}
