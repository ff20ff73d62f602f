"""The estimators: scikit-learn's interface over the learners and feature maps below. The only home of scikit-learn."""
